"""The programs of `planted.py`: small trainings with a cost of known size in them, and sound ones."""

from __future__ import annotations

from dataclasses import dataclass

from trainings import STEP

HEAD = """\
import sys, time
import numpy as np
import tensorflow as tf

COST = COST_MS / 1000
notes = open(sys.argv[1], "w")

def note(word, value):
    notes.write(f"{word} {value}\\n")
    notes.flush()

def planted():
    began = time.perf_counter()
    time.sleep(COST)
    note("cost", time.perf_counter() - began)

class Noted(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        note("step", time.perf_counter())

options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
x = np.random.rand(640, 64).astype("float32")
y = np.random.rand(640, 1).astype("float32")
layers = [tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)]
model = tf.keras.Sequential([tf.keras.Input([64]), *layers])
model.compile("sgd", "mse")
"""
ARRAYS = "ds = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)\n"
FIT = "model.fit(ds, steps_per_epoch=100, verbose=0, callbacks=[Noted()])\n"
#: So many ops that the Python before the first and after the last of them is little.
DEEPER = """\
layers = [tf.keras.layers.Dense(64, activation="relu") for _ in range(12)]
model = tf.keras.Sequential([tf.keras.Input([64]), *layers, tf.keras.layers.Dense(1)])
"""
#: So wide that the Python of a step is little beside its work.
WIDER = """\
layers = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.Input([64]), *layers, tf.keras.layers.Dense(1)])
"""
LOOP = """\
for number, (inputs, targets) in enumerate(ds.take(100).prefetch(2)):
    step(inputs, targets)
    note("step", time.perf_counter())
"""
#: What a step that traces takes longer than the steps that do not.
RETRACED = (
    STEP.replace("(inputs, targets):", "(inputs, targets, rate):")
    .replace("    with tf", "    traced.append(1)\n    with tf")
    .replace("loss = ", "loss = rate * ")
    .replace("@tf", "traced, plain = [], []\n\n@tf")
)
RETRACING = """\
for number, (inputs, targets) in enumerate(ds.take(100).prefetch(2)):
    before, began = len(traced), time.perf_counter()
    step(inputs, targets, number // EVERY / 100)
    spent = time.perf_counter() - began
    if len(traced) == before:
        plain.append(spent)
    elif plain:
        note("cost", spent - sorted(plain)[len(plain) // 2])
    note("step", time.perf_counter())
"""
#: An op between two readings of the graph's own clock.
TIMED = """
optimizer = tf.keras.optimizers.SGD()
SETUP

@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        began = tf.timestamp()
        # The op reads the clock and the loss the op: what only control edges hold is optimised away.
        given = GIVEN + tf.cast(began * 1e-30, tf.float32)
        made = OP
        with tf.control_dependencies([made]):
            ended = tf.timestamp()
        # The rest of the step waits: what runs beside the op would count as its time.
        with tf.control_dependencies([ended]):
            inputs = tf.identity(inputs)
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets)) + 1e-20 * tf.reduce_mean(made)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return ended - began, loss

for number, (inputs, targets) in enumerate(ds.take(100).prefetch(2)):
    note("cost", float(step(inputs, targets)[0]))
    note("step", time.perf_counter())
"""


@dataclass(frozen=True)
class Plant:
    """A program with a cost in it: the rule that shall find it, and which of its figures is the cost's share.

    `cost` is in milliseconds. A figure without a rule is a bucket of the breakdown, or ``python in the step``.
    `without` replaces a part of the program to take the cost out, where the program cannot note it itself.
    """

    name: str
    figure: str
    program: str
    rule: str = ""
    cost: float = 40.0
    without: tuple[str, str] | None = None

    def text(self, *, sound: bool = False) -> str:
        """Return the program, or its twin without the cost."""
        text = (HEAD + self.program).replace("COST_MS", str(self.cost))
        return text.replace(*self.without) if sound and self.without else text


PLANTS = (
    Plant(
        "a NumPy function that sleeps in the map",
        "input_wait_share",
        "def load(rows):\n    planted()\n    return rows\n\n"
        "def loaded(rows, targets):\n"
        "    return tf.ensure_shape(tf.numpy_function(load, [rows], tf.float32), [32, 64]), targets\n\n"
        + ARRAYS
        + "ds = ds.map(loaded).with_options(options)\n"
        + FIT,
        "python-op-in-map",
    ),
    Plant(
        "a generator that sleeps",
        "input_wait_share",
        "def rows():\n    while True:\n        planted()\n        yield x[:32], y[:32]\n\n"
        "signature = (tf.TensorSpec([32, 64]), tf.TensorSpec([32, 1]))\n"
        "ds = tf.data.Dataset.from_generator(rows, output_signature=signature).with_options(options)\n" + FIT,
        "generator-over-arrays",
    ),
    Plant(
        "a PyDataset that sleeps",
        "input_wait",
        "class Rows(tf.keras.utils.PyDataset):\n"
        "    def __len__(self):\n        return 100\n\n"
        "    def __getitem__(self, index):\n        planted()\n        return x[:32], y[:32]\n\n"
        "model.fit(Rows(), verbose=0, callbacks=[Noted()])\n",
        without=("        planted()\n", ""),
    ),
    Plant(
        "a callback that sleeps after every batch",
        "callback_share",
        "class Slow(tf.keras.callbacks.Callback):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        began = time.perf_counter()\n        time.sleep(COST)\n"
        '        note("cost", time.perf_counter() - began)\n\n'
        + ARRAYS
        + FIT.replace("[Noted()]", "[Slow(), Noted()]"),
        "per-batch-callback-work",
        cost=10.0,
    ),
    Plant(
        "a callback that predicts after every fifth batch",
        "callback_share",
        "class Look(tf.keras.callbacks.Callback):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        if batch % 5 == 0:\n"
        "            began = time.perf_counter()\n            self.model.predict(x, verbose=0)\n"
        '            note("cost", time.perf_counter() - began)\n\n'
        + ARRAYS
        + FIT.replace("[Noted()]", "[Look(), Noted()]"),
        "",
    ),
    Plant(
        "a step traced again at every second step",
        "tracing_share",
        RETRACED + ARRAYS + RETRACING.replace("number // EVERY", "number // 2"),
        "function-retracing",
    ),
    Plant(
        "a step traced again at every fifth step",
        "compile",
        RETRACED + ARRAYS + RETRACING.replace("EVERY", "5"),
    ),
    Plant(
        "a step that Python runs op by op",
        "eager_share",
        DEEPER
        + STEP.replace("@tf.function\n", "")
        + ARRAYS
        + LOOP.replace(
            "    step(inputs, targets)\n",
            "    began = time.perf_counter()\n    step(inputs, targets)\n"
            '    note("cost", time.perf_counter() - began)\n    time.sleep(COST)\n',
        ),
        "eager-train-step",
        cost=30.0,
    ),
    Plant(
        "predict for single rows in the loop",
        "calls_share",
        STEP
        + ARRAYS
        + LOOP.replace(
            "    step(inputs, targets)\n",
            "    step(inputs, targets)\n    began = time.perf_counter()\n"
            "    for row in x[:24]:\n        model.predict_on_batch(row[np.newaxis])\n"
            '    note("cost", time.perf_counter() - began)\n    time.sleep(COST)\n',
        ),
        "single-sample-calls",
        cost=20.0,
    ),
    Plant(
        "Python in the step",
        "python in the step",
        "def slow(rows):\n    planted()\n    return rows\n"
        + STEP.replace(
            "    with tf",
            "    inputs = tf.ensure_shape(tf.py_function(slow, [inputs], tf.float32), [32, 64])\n    with tf",
        )
        + ARRAYS
        + LOOP,
    ),
    Plant(
        "an op that has no GPU kernel",
        "cpu_op_share",
        ARRAYS
        + TIMED.replace("SETUP", "scores = tf.random.normal([20, 8, 20])\nlengths = tf.fill([8], 20)")
        .replace("GIVEN", "scores")
        .replace("OP\n", "tf.nn.ctc_beam_search_decoder(given, lengths, beam_width=10)[1]\n"),
        "cpu-only-op",
    ),
    Plant(
        "a map over the rows of the batch",
        "loop_share",
        ARRAYS
        + TIMED.replace("SETUP", "")
        .replace("GIVEN", "tf.tile(inputs, [8, 1])")
        .replace("OP\n", "tf.map_fn(lambda row: tf.reduce_sum(tf.sort(row)), given)\n"),
        "map-fn-in-step",
    ),
    Plant(
        "a shuffle buffer filled at the start of every epoch",
        "refill_share",
        "class Even(Noted):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        time.sleep(0.05)\n        super().on_train_batch_end(batch)\n\n"
        "def load(row):\n    planted()\n    return row\n\n"
        "def loaded(data, row, target):\n"
        "    picture = tf.cast(tf.io.decode_png(data, channels=1), tf.float32)\n"
        "    row = tf.ensure_shape(tf.numpy_function(load, [row], tf.float32), [64])\n"
        "    return row + picture[0, 0, 0], target\n\n"
        "pictures = [tf.io.encode_png(np.zeros([8, 8, 1], 'uint8')).numpy()] * 320\n"
        "ds = tf.data.Dataset.from_tensor_slices((pictures, x[:320], y[:320]))\n"
        "ds = ds.map(loaded).shuffle(320).batch(32).with_options(options)\n"
        "model.fit(ds, epochs=10, verbose=0, callbacks=[Even()])\n",
        "shuffle-buffer-stall",
        cost=1.0,
        without=(".shuffle(320)", ".cache().shuffle(320)"),
    ),
    Plant(
        "validation after every epoch of ten steps",
        "validation_share",
        "class Look(Noted):\n"
        "    def on_train_batch_end(self, batch, logs=None):\n"
        "        super().on_train_batch_end(batch)\n        self.ended = time.perf_counter()\n\n"
        "    def on_test_batch_end(self, batch, logs=None):\n        time.sleep(COST)\n\n"
        "    def on_epoch_end(self, epoch, logs=None):\n        note('cost', time.perf_counter() - self.ended)\n\n"
        "    def on_train_batch_begin(self, batch, logs=None):\n        time.sleep(0.02)\n\n"
        + ARRAYS
        + "valid = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)\n"
        "model.fit(ds, steps_per_epoch=10, epochs=20, validation_data=valid, verbose=0, callbacks=[Look()])\n",
        "validation-overhead",
        cost=4.0,
    ),
    Plant(
        "a loop that sleeps between steps",
        "host",
        WIDER
        + STEP
        + ARRAYS
        + LOOP.replace(
            "    step(inputs, targets)\n    note(",
            "    step(inputs, targets)\n    began = time.perf_counter()\n    time.sleep(COST)\n"
            '    note("cost", time.perf_counter() - began)\n    note(',
        ),
        cost=40.0,
    ),
)

SOUND = {
    "fit on a dataset that runs ahead": ARRAYS + "ds = ds.prefetch(2)\n" + FIT,
    "a loop with a tf.function": STEP + ARRAYS + LOOP,
}
