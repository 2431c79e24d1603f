import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x, y = tf.random.normal([4096, 64]), tf.random.normal([4096, 1])
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(4096).batch(16).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
# Of one's own loops TensorFlow 2.21 runs none over a distributed dataset on two logical CPUs.
model.fit(ds, epochs=2, verbose=0)
