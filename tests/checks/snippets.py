"""Pieces of training programs that tests of several rules put together."""

from __future__ import annotations

#: Imports, a fed dataset, a small model and its optimizer.
SETUP = """\
import numpy as np
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1])))
ds = ds.batch(256).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
"""

#: A gradient step as a function; `@tf.function` may be put before it.
STEP = """\
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
"""

#: Compiled training of the same model.
FIT = """\
model.compile("adam", "mse")
model.fit(tf.zeros([4096, 8]), tf.zeros([4096, 1]), batch_size=256, epochs=10)
"""

COMPILED_STEP = "@tf.function\n" + STEP
