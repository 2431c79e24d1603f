import sys
import time

import numpy as np
import tensorflow as tf

notes = open(sys.argv[1], "w")


def note(word, value):
    notes.write(f"{word} {value}\n")
    notes.flush()


def sleep(word, seconds):
    began = time.perf_counter()
    time.sleep(seconds)
    note(word, time.perf_counter() - began)


def slow(rows):
    sleep("python", 0.020)
    return rows


x = np.random.rand(640, 16).astype("float32")
y = np.random.rand(640, 1).astype("float32")
ds = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()


@tf.function
def step(inputs, targets):
    inputs = tf.ensure_shape(tf.py_function(slow, [inputs], tf.float32), [32, 16])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for inputs, targets in ds.take(100).prefetch(2):
    step(inputs, targets)
    sleep("host", 0.030)
    note("step", time.perf_counter())
