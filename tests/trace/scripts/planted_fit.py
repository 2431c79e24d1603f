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


def load(rows):
    sleep("input", 0.020)
    return rows


def loaded(rows, targets):
    return tf.ensure_shape(tf.numpy_function(load, [rows], tf.float32), [32, 16]), targets


class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        began = time.perf_counter()
        time.sleep(0.012)
        note("callback", time.perf_counter() - began)
        note("step", time.perf_counter())


# Nothing overlaps: each cost is felt in full.
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
x = np.random.rand(640, 16).astype("float32")
y = np.random.rand(640, 1).astype("float32")
ds = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32).map(loaded).with_options(options)

model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, steps_per_epoch=100, verbose=0, callbacks=[Slow()])
