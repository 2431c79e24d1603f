"""Measure what watching a run adds to a step: the same training, plain and under ``tflint-gpu trace``, in turn.

    python benchmarks/probe.py [--rounds N] [--publish]

Small trainings, with ``fit`` and with a loop and a ``tf.function``, note the time at the end of every step
themselves. Compared are the medians of the 300 steps between warm-up and the profiler's window, of which a trace
has 20: so few differ more from run to run than by what watching adds. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from page import publish
from trainings import STEP

ROOT = Path(__file__).resolve().parents[1]
#: The trace lets ten steps pass and times so many before it profiles.
PLAIN = 300
FIRST, LAST = 11, 9 + PLAIN
#: The command with a longer stretch of plain steps.
LONGER = f"""
from tflint_gpu.cli import main
from tflint_gpu.trace import session
session.PLAIN_STEPS, session.PHASE_SECONDS = {PLAIN}, 60.0
main()
"""
LIMIT = 1.05

HEAD = """\
import sys, time
import tensorflow as tf

notes = open(sys.argv[1], "w")

def note():
    notes.write(f"{time.perf_counter()} {time.process_time()}\\n")
    notes.flush()

x = tf.random.normal([BATCH * 80, 256])
y = tf.random.normal([BATCH * 80, 1])
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).repeat(5).prefetch(2)
layers = [tf.keras.layers.Dense(512, activation="relu") for _ in range(4)]
model = tf.keras.Sequential([tf.keras.Input([256]), *layers, tf.keras.layers.Dense(1)])
"""
FIT = """
class Noted(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        note()

model.compile("sgd", "mse")
model.fit(ds, verbose=0, callbacks=[Noted()])
"""
LOOP = f"""{STEP}
for inputs, targets in ds:
    step(inputs, targets)
    note()
"""
TRAININGS = {
    "fit, batches of 256": (HEAD + FIT).replace("BATCH", "256"),
    "fit, batches of 8": (HEAD + FIT).replace("BATCH", "8"),
    "loop with a tf.function, batches of 256": (HEAD + LOOP).replace("BATCH", "256"),
}


def steps(script: Path, notes: Path, *, traced: bool) -> tuple[float, float]:
    """Run `script` and return the median wall and CPU time of its steps, in milliseconds."""
    watch = ["-c", LONGER, "trace", "--what-if", "none", "--evidence-out", str(notes.with_suffix(".json"))]
    command = [sys.executable, *(watch if traced else []), str(script), str(notes)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{script.name} failed: {done.stderr[-500:]}")
    times = [tuple(map(float, line.split())) for line in notes.read_text(encoding="utf-8").splitlines()]
    if len(times) <= LAST:
        raise SystemExit(f"{script.name} noted only {len(times)} steps")
    wall, cpu = zip(*times[FIRST - 1 : LAST + 1], strict=True)
    return _median_step(wall), _median_step(cpu)


def _median_step(moments: tuple[float, ...]) -> float:
    return 1000 * statistics.median(after - before for before, after in pairwise(moments))


def row(name: str, rounds: int, folder: Path) -> str:
    """Return the row of one training: medians over the rounds, ratios within each round."""
    script, notes = folder / "train.py", folder / "notes.txt"
    script.write_text(TRAININGS[name], encoding="utf-8")
    plain, traced = [], []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
        plain.append(steps(script, notes, traced=False))
        traced.append(steps(script, notes, traced=True))
    wall, cpu = (
        [after[kind] / before[kind] for before, after in zip(plain, traced, strict=True)] for kind in (0, 1)
    )
    before, after = (statistics.median(each[0] for each in runs) for runs in (plain, traced))
    held = "yes" if statistics.median(wall) <= LIMIT else "**no**"
    return (
        f"| {name} | {before:.2f} ms | {after:.2f} ms | {statistics.median(wall):.3f} "
        f"| {min(wall):.2f}–{max(wall):.2f} | {statistics.median(cpu):.3f} | at most {LIMIT} | {held} |"
    )


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each training is run (3)")
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    given = parser.parse_args()
    head = [
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; medians of {given.rounds} pairs of runs.",
        "",
        "| training | plain step | watched step | wall | from round to round | CPU | promised | held |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        told = "\n".join([*head, *(row(name, given.rounds, Path(folder)) for name in TRAININGS)])
    print(told)
    if given.publish:
        publish("probe", told)


if __name__ == "__main__":
    main()
