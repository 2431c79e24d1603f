import time

import numpy as np
import tensorflow as tf


def load(rows):
    time.sleep(0.020)
    return rows


def loaded(rows, targets):
    return tf.ensure_shape(tf.numpy_function(load, [rows], tf.float32), [32, 16]), targets


class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.012)


# Nothing overlaps: each cost is felt in full.
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
ds = tf.data.Dataset.from_tensor_slices((np.ones([640, 16], "float32"), np.ones([640, 1], "float32")))
ds = ds.repeat().batch(32).map(loaded).with_options(options)

model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, steps_per_epoch=100, verbose=0, callbacks=[Slow()])
