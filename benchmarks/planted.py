"""Plant a known cost in a training program, trace it, and compare the share that the trace finds with the truth.

    python benchmarks/planted.py [--only WORD]...

Every program notes its own steps, and where it can the planted cost of each; the trace is not asked.
Where it cannot tell (work that overlaps, tracing, an op), the truth is what the same program without the cost
takes less, in two untraced runs after the trace. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The trace lets ten steps pass, times twenty, profiles twenty: a figure is held against notes of its own steps.
PLAIN, PROFILED = (10, 30), (31, 49)
#: Points (of a hundred) that a share may be off.
LIMIT = 5.0

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
STEP = """
optimizer = tf.keras.optimizers.SGD()

@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

"""
LOOP = """\
for number, (inputs, targets) in enumerate(ds.take(100).prefetch(2)):
    step(inputs, targets)
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
        "python-generator-input",
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
        "a step traced again for every new number",
        "tracing_share",
        STEP.replace("(inputs, targets):", "(inputs, targets, rate):").replace("loss = ", "loss = rate * ")
        + ARRAYS
        + LOOP.replace("step(inputs, targets)", "step(inputs, targets, number / 100)"),
        "function-retracing",
        without=("number / 100", "tf.constant(0.01)"),
    ),
    Plant(
        "a step traced again at every fifth step",
        "compile",
        STEP.replace("(inputs, targets):", "(inputs, targets, rate):").replace("loss = ", "loss = rate * ")
        + ARRAYS
        + LOOP.replace("step(inputs, targets)", "step(inputs, targets, number // 5 / 100)"),
        without=("number // 5 / 100", "tf.constant(0.01)"),
    ),
    Plant(
        "a step that Python runs op by op",
        "eager_share",
        STEP.replace("@tf.function\n", "")
        + ARRAYS
        + LOOP.replace(
            "    step(inputs, targets)\n",
            "    began = time.perf_counter()\n    step(inputs, targets)\n"
            '    note("cost", time.perf_counter() - began)\n    time.sleep(COST)\n',
        ),
        "eager-train-step",
        cost=10.0,
    ),
    Plant(
        "predict for single rows in the loop",
        "calls_share",
        STEP
        + ARRAYS
        + LOOP.replace(
            "    step(inputs, targets)\n",
            "    step(inputs, targets)\n    began = time.perf_counter()\n"
            "    for row in x[:12]:\n        model.predict(row[np.newaxis], verbose=0)\n"
            '    note("cost", time.perf_counter() - began)\n    time.sleep(COST)\n',
        ),
        "single-sample-calls",
        cost=200.0,
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
        STEP.replace(
            "    with tf.GradientTape() as tape:\n",
            "    with tf.GradientTape() as tape:\n"
            '        inputs = inputs + tf.reduce_mean(tf.image.resize(big, [512, 512], method="bicubic"))\n',
        ).replace("@tf.function\n", "big = tf.random.uniform([4, 64, 64, 3])\n\n@tf.function\n")
        + ARRAYS
        + LOOP,
        "cpu-only-op",
        without=('tf.image.resize(big, [512, 512], method="bicubic")', "big"),
    ),
    Plant(
        "a shuffle buffer filled at the start of every epoch",
        "refill_share",
        "def load(row):\n    planted()\n    return row\n\n"
        "def loaded(row, target):\n"
        "    return tf.ensure_shape(tf.numpy_function(load, [row], tf.float32), [64]), target\n\n"
        "ds = tf.data.Dataset.from_tensor_slices((x[:160], y[:160])).map(loaded).shuffle(160).batch(16)\n"
        "ds = ds.with_options(options)\n"
        "model.fit(ds, epochs=10, verbose=0, callbacks=[Noted()])\n",
        "shuffle-buffer-stall",
        cost=1.0,
    ),
    Plant(
        "a loop that sleeps between steps",
        "host",
        STEP + ARRAYS + LOOP.replace("    step(inputs, targets)\n", "    step(inputs, targets)\n    planted()\n"),
        cost=20.0,
    ),
)

SOUND = {
    "fit on a dataset that runs ahead": ARRAYS + "ds = ds.prefetch(2)\n" + FIT,
    "a loop with a tf.function": STEP + ARRAYS + LOOP,
}


def run(script: Path, *, traced: bool) -> dict[str, object] | None:
    """Run `script`, which leaves its notes beside it; traced, return the report with the evidence in it."""
    evidence = script.with_name("evidence.json")
    watch = [
        "-m",
        "tflint_gpu",
        "trace",
        "--what-if",
        "none",
        "--output-format",
        "json",
        "--evidence-out",
        str(evidence),
    ]
    command = [sys.executable, *(watch if traced else []), script.name, str(script.with_name("notes.txt"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in ((0, 1) if traced else (0,)):
        raise SystemExit(f"a planted program failed: {done.stderr[-500:]}")
    if not traced:
        return None
    return {**json.loads(done.stdout), "evidence": json.loads(evidence.read_text(encoding="utf-8"))}


def noted(script: Path, steps: tuple[int, int] = PLAIN) -> tuple[float, float]:
    """Return the mean of `steps` and the mean planted cost in one, in seconds."""
    moments: list[float] = []
    costs: list[float] = [0.0]
    for line in script.with_name("notes.txt").read_text(encoding="utf-8").splitlines():
        word, value = line.split()
        if word == "cost":
            costs[-1] += float(value)
        else:
            moments.append(float(value))
            costs.append(0.0)
    # Long steps: the trace makes do with fewer after some seconds.
    first, last = steps[0], min(steps[1], len(moments) - 1)
    if last < first + 5:
        raise SystemExit(f"only {len(moments)} steps were noted")
    # The cost that stands under a number was paid on the way to the step's end of that number.
    return (moments[last] - moments[first]) / (last - first), statistics.fmean(costs[first + 1 : last + 1])


def truth(plant: Plant, script: Path) -> float:
    """Return the share of the step that the planted cost takes, after a traced run of `script`."""
    if plant.without is None:
        step, cost = noted(script, PLAIN if plant.figure in ("callback_share", "calls_share") else PROFILED)
        return cost / step
    script.write_text(plant.text(sound=True), encoding="utf-8")
    run(script, traced=False)
    bare = noted(script)[0]
    script.write_text(plant.text(), encoding="utf-8")
    run(script, traced=False)
    return 1.0 - bare / noted(script)[0]


def measured(plant: Plant, report: dict[str, object]) -> tuple[float | None, str]:
    """Return the share that the report gives for the planted cost, and the verdict on the rule's finding."""
    evidence = report["evidence"]
    assert isinstance(evidence, dict) and isinstance(report["findings"], list)
    steps = evidence["steps"]
    total = sum(step["step_ms"] for step in steps)
    if plant.rule:
        found = [finding for finding in report["findings"] if finding["name"] == plant.rule]
        figures = {each["metric"]: each["value"] for finding in found for each in finding["evidence"]}
        return figures.get(plant.figure), found[0]["verdict"] if found else "not found"
    if plant.figure == "callback_share":
        return max(each["ms_per_step"] for each in evidence["callbacks"]) / evidence["window"]["step_ms"], ""
    if plant.figure == "python in the step":
        inside = [
            each for each in evidence["placements"] if each["op"] in ("EagerPyFunc", "PyFunc") and each["in_step"]
        ]
        return sum(each["ms"] or 0.0 for each in inside) * len(steps) / total, ""
    return sum(step["buckets"][plant.figure] for step in steps) / total, ""


def row(plant: Plant, folder: Path) -> str:
    """Return the row of one plant."""
    script = folder / "train.py"
    script.write_text(plant.text(), encoding="utf-8")
    report = run(script, traced=True)
    assert report is not None
    share, verdict = measured(plant, report)
    true = truth(plant, script)
    off = None if share is None else 100 * (share - true)
    right = off is not None and abs(off) <= LIMIT and verdict in ("", "confirmed")
    cells = (f"{true:.1%}", "–" if share is None else f"{share:.1%}", "–" if off is None else f"{off:+.1f}")
    said = f"{' | '.join(cells)} | {verdict} | {'yes' if right else '**no**'}"
    return f"| {plant.name} | {plant.rule or plant.figure} | {said} |"


def quiet(name: str, folder: Path) -> str:
    """Return the row of a sound program."""
    script = folder / "train.py"
    script.write_text((HEAD + SOUND[name]).replace("COST_MS", "0"), encoding="utf-8")
    report = run(script, traced=True)
    assert report is not None and isinstance(report["findings"], list)
    loud = [
        finding["name"]
        for finding in report["findings"]
        if finding["severity"] in ("warning", "error") and finding["verdict"] in ("confirmed", "observed")
    ]
    return f"| {name} | none | | | | {', '.join(loud)} | {'**no**' if loud else 'yes'} |"


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="only programs with this in their name")
    words = parser.parse_args().only or [""]
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}.\n")
    print(
        "| planted | judged by | true | measured | points off | verdict | right |\n|---|---|--:|--:|--:|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for plant in PLANTS:
            if any(word in plant.name for word in words):
                print(row(plant, Path(folder)), flush=True)
        for name in SOUND:
            if any(word in name for word in words):
                print(quiet(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
