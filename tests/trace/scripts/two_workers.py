"""One of two workers of a MultiWorkerMirroredStrategy job; the second one's input is slow."""

import json
import os
import sys
import time

rank, addresses, service, seconds = int(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), float(sys.argv[4])
cluster = {"worker": addresses}
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.profiler.experimental.server.start(service)


row = np.zeros([32], "float32"), np.zeros([1], "float32")


def rows():
    while True:
        time.sleep(0.002 * rank)
        yield row


signature = (tf.TensorSpec([32], tf.float32), tf.TensorSpec([1], tf.float32))
ds = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(16).prefetch(2)
batches = iter(strategy.experimental_distribute_dataset(ds))
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([32]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(batches):
    def step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    strategy.run(step, args=(next(batches),))


# Both must make the same number of steps, or one waits for the other for ever.
train_step(batches)
print("training", flush=True)
for _ in range(int(seconds / 0.04)):
    train_step(batches)
os._exit(0)
