"""Trains in the way that its argument names; runs on every TensorFlow from 2.8 on."""

import sys
import threading
import time

import numpy as np
import tensorflow as tf

x = np.random.rand(1024, 8).astype("float32")
y = np.random.rand(1024, 1).astype("float32")
model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(16), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()


class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)


class Items(getattr(tf.keras.utils, "PyDataset", tf.keras.utils.Sequence)):
    def __len__(self):
        return 32

    def __getitem__(self, at):
        time.sleep(0.01)
        return x[at * 8 : at * 8 + 8], y[at * 8 : at * 8 + 8]


def waits(row):
    time.sleep(0.001)
    return row


def slow_rows(row, target):
    row = tf.numpy_function(waits, [row], tf.float32)
    return tf.ensure_shape(row, [8]), target


def batches():
    while True:
        yield x[:8], y[:8]


def train(rows, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(rows, training=True) - targets))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


compiled = tf.function(train)
plain = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
slow = tf.data.Dataset.from_tensor_slices((x, y)).map(slow_rows).batch(8)
model.compile("sgd", "mse", run_eagerly=sys.argv[1] == "eager-fit")

if sys.argv[1] == "thread":
    threading.Thread(target=model.fit, args=(slow,), kwargs={"epochs": 2, "verbose": 0}).start()
elif sys.argv[1] == "no-steps":
    forward = tf.function(model)
    until = time.monotonic() + 5.0
    while time.monotonic() < until:
        forward(x[:8])
elif sys.argv[1] in ("fit", "eager-fit"):
    model.fit(slow, epochs=2, verbose=0, callbacks=[Slow()])
elif sys.argv[1] == "sequence":
    model.fit(Items(), epochs=2, verbose=0)
elif sys.argv[1] == "generator":
    model.fit(batches(), steps_per_epoch=100, verbose=0)
elif sys.argv[1] == "train_on_batch":
    for rows, targets in plain:
        model.train_on_batch(rows, targets)
elif sys.argv[1] == "eager-loop":
    for rows, targets in plain:
        train(rows, targets)
else:
    for rows, targets in slow:
        compiled(rows, targets)
