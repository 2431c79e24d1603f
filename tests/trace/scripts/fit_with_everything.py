import os
import sys

import numpy as np
import tensorflow as tf

x = np.random.rand(512, 16).astype("float32")
y = np.random.rand(512, 1).astype("float32")


def rows():
    for left, right in zip(x, y):
        yield left, right


def shift(values):
    return np.asarray(values) + 0.5


def slowly(left, right):
    moved = tf.numpy_function(shift, [left], tf.float32)
    moved.set_shape((16,))
    return moved, right


class Watcher(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.predict(x[:8], verbose=0)


signature = (tf.TensorSpec((16,), tf.float32), tf.TensorSpec((1,), tf.float32))
ds = tf.data.Dataset.from_generator(rows, output_signature=signature)
ds = ds.map(slowly)
ds = ds.batch(32)

model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
saver = tf.keras.callbacks.ModelCheckpoint(os.path.join(sys.argv[1], "best.keras"))
model.fit(ds, epochs=40, verbose=0, callbacks=[saver, Watcher()])
model.save(os.path.join(sys.argv[1], "last.keras"))
