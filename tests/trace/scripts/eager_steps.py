import sys

import numpy as np
import tensorflow as tf

x = np.random.rand(640, 16).astype("float32")
y = np.random.rand(640, 1).astype("float32")
layers = [tf.keras.layers.Dense(8) for _ in range(8)]
model = tf.keras.Sequential([tf.keras.Input([16]), *layers, tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()


class Trainer:
    def step(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss


def closure():
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    for _ in range(10):
        for inputs, targets in ds:
            float(step(inputs, targets))


def method():
    trainer = Trainer()
    for number in range(400):
        at = 32 * (number % 20)
        trainer.step(tf.constant(x[at : at + 32]), tf.constant(y[at : at + 32]))


def needs_python():
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss.numpy()

    for inputs, targets in tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat(10):
        step(inputs, targets)


def loose():
    for inputs, targets in tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat(10):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


globals()[sys.argv[1]]()
