import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()


@tf.function
def step(inputs, padding):
    with tf.GradientTape() as tape:
        rows = tf.map_fn(lambda row: tf.sort(row) / tf.reduce_sum(row), inputs)  # the loop
        loss = tf.reduce_mean(tf.square(model(rows, training=True))) + tf.reduce_mean(padding)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


x = np.random.rand(640, 16).astype("float32")
data = tf.data.Dataset.from_tensor_slices(x).repeat().batch(64).prefetch(2)
for number, inputs in enumerate(data.take(100)):
    padding = np.zeros([4, 8 + number // 4], "float32")  # padded by hand to ever new lengths
    step(inputs, tf.constant(padding))  # the call
