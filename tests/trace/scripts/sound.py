import numpy as np
import tensorflow as tf

x = np.random.rand(4096, 64).astype("float32")
y = np.random.rand(4096, 1).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(4096).batch(256).prefetch(tf.data.AUTOTUNE)
layers = [tf.keras.layers.Dense(512, activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.Input([64]), *layers, tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(data, epochs=20, verbose=0)
