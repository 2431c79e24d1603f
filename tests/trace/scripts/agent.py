import numpy as np
import tensorflow as tf

net = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(2)])
opt = tf.keras.optimizers.Adam()
state = np.zeros((1, 4), "float32")
for move in range(200):
    with tf.GradientTape() as tape:
        scores = net(state)
        loss = tf.reduce_sum(scores)
    gradients = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(gradients, net.trainable_variables))
    state = np.random.rand(1, 4).astype("float32")
