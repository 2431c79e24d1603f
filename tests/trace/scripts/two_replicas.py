import sys

import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x, y = tf.random.normal([4096, 64]), tf.random.normal([4096, 1])
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(4096).batch(16).prefetch(tf.data.AUTOTUNE)

if sys.argv[1] == "fit":
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=False)
    model.fit(ds, epochs=2, verbose=0)
else:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam()

    @tf.function
    def train_step(batches):
        def step(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        strategy.run(step, args=(next(batches),))

    batches = iter(strategy.experimental_distribute_dataset(ds.repeat()))
    for _ in range(200):
        train_step(batches)
