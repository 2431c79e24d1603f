import pickle

import h5py
import numpy as np
import tensorflow as tf
from parts import build

x = np.random.rand(640, 8).astype("float32")
y = np.random.rand(640, 1).astype("float32")
model = build()
model.compile("adam", "mse")
model.save("best.keras")
tf.saved_model.save(model, "exported")
model.export("served")
tf.keras.models.save_model(model, "again.keras")

# By other means, which nobody can hold back: they are told.
np.save("array.npy", x[:2])
with open("state.pickle", "wb") as file:
    pickle.dump([1], file)
tf.io.write_file("written.txt", "by an op")
with tf.io.TFRecordWriter("rows.tfrecord") as records:
    records.write(b"row")
with h5py.File("rows.h5", "w") as rows:
    rows["x"] = x[:2]

checkpoint = tf.train.Checkpoint(model=model)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=1)
manager.save()
checkpoint.write("single/weights")
writer = tf.summary.create_file_writer("logs/own")
board = tf.keras.callbacks.TensorBoard("logs/by_hand")
board.set_model(model)
board.on_epoch_end(0, {"loss": 1.0})


class Saving(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.save_weights("last.weights.h5")
        with writer.as_default(step=batch):
            tf.summary.write("loss", logs["loss"])
        if batch == 3:
            with open("by_hand.csv", "a") as file:
                file.write("3\n")


ds = tf.data.Dataset.from_tensor_slices((x, y)).cache("cached/rows").batch(16)
model.fit(
    ds,
    epochs=5,
    verbose=0,
    callbacks=[
        tf.keras.callbacks.ModelCheckpoint("best.keras", save_freq=2),
        tf.keras.callbacks.BackupAndRestore("backup", save_freq=2),
        tf.keras.callbacks.CSVLogger("training.csv"),
        tf.keras.callbacks.TensorBoard("logs/board", update_freq=1, profile_batch=(2, 4)),
        Saving(),
    ],
)
