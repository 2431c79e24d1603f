import time

import numpy as np
import tensorflow as tf


def slow(left, right):
    time.sleep(0.005)
    return left, right


x = np.random.rand(64, 8).astype("float32")
y = np.random.rand(64, 1).astype("float32")
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
ds = ds.map(lambda a, b: tf.numpy_function(slow, [a, b], (tf.float32, tf.float32)))
ds = ds.map(lambda a, b: (tf.ensure_shape(a, (None, 8)), tf.ensure_shape(b, (None, 1))))
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, epochs=2, verbose=0)
