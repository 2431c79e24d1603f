import time

import tensorflow as tf


def slow(rows):
    time.sleep(0.020)
    return rows


weights = tf.Variable(tf.zeros([16, 1]))
optimizer = tf.keras.optimizers.SGD()


@tf.function
def step(inputs):
    inputs = tf.ensure_shape(tf.py_function(slow, [inputs], tf.float32), [32, 16])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(inputs @ weights - 1.0))
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    return loss


for inputs in tf.data.Dataset.from_tensor_slices(tf.ones([3200, 16])).batch(32).prefetch(2):
    step(inputs)
    time.sleep(0.030)
