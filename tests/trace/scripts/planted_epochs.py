import time

import numpy as np
import tensorflow as tf


class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.02)

    def on_test_batch_end(self, batch, logs=None):
        time.sleep(0.005)


data = tf.data.Dataset.from_tensor_slices((np.ones([640, 16], "float32"), np.ones([640, 1], "float32")))
train, valid = data.repeat().batch(32).prefetch(2), data.batch(16).prefetch(2)
model = tf.keras.Sequential([tf.keras.Input([16]), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
saving = tf.keras.callbacks.ModelCheckpoint("last.keras", save_freq=5)
model.fit(train, steps_per_epoch=10, epochs=20, validation_data=valid, verbose=0, callbacks=[Slow(), saving])
