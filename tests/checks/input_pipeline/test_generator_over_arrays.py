"""Tests of generator-over-arrays beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PythonInput, Spot

RULE = "generator-over-arrays"

HEAD = """\
import random
import cv2
import numpy as np
import pandas as pd
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
"""


def of(analyse: Analyse, body: str) -> list[Severity]:
    return [finding.severity for finding in named(analyse(HEAD + body, select=(RULE,)), RULE)]


def fed(body: str) -> str:
    """A generator of that body behind from_generator, in front of training."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (
        f"def rows():\n{lines}\n"
        "ds = tf.data.Dataset.from_generator(rows, output_types=(tf.float32, tf.float32)).batch(8).prefetch(2)\n"
        "model.fit(ds, epochs=3)\n"
    )


SILENT = {
    "memory map": 'm = np.load("x.npy", mmap_mode="r")\nfor row in m:\n    yield row, 1.0',
    "augments on the fly": "for a, b in zip(x, y):\n    yield a + np.random.normal(size=3), b",
    "reads a file": "for name in x:\n    yield cv2.imread(name), 1.0",
    "metadata": 'for name in ["a", "b"]:\n    yield name, 1.0',
    "unknown work": "for a, b in zip(x, y):\n    yield prepare(a), b",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_is_silent_on_a_generator_that(body: str, analyse: Analyse) -> None:
    assert of(analyse, fed(body)) == []


def test_is_silent_where_the_arrays_are_too_large_to_copy(analyse: Analyse) -> None:
    large = "big = np.zeros((100_000, 224, 224, 3), 'float32')\n"
    assert of(analyse, large + fed("for i in range(len(big)):\n    yield big[i], y[i]")) == []


def test_is_silent_behind_a_cache_and_for_prediction(analyse: Analyse) -> None:
    body = fed("for a, b in zip(x, y):\n    yield a, b")
    assert of(analyse, body.replace(".batch(8)", ".cache().batch(8)")) == []
    assert of(analyse, body.replace("model.fit(ds, epochs=3)", "model.predict(ds)")) == []


def test_rows_are_loud_and_slices_are_not(analyse: Analyse) -> None:
    assert of(analyse, fed("for i in range(len(x)):\n    yield x[i], y[i]")) == [Severity.WARNING]
    assert of(analyse, fed("for i in range(0, len(x), 8):\n    yield x[i : i + 8], y[i : i + 8]")) == [
        Severity.INFO
    ]


def test_table_rows_count(analyse: Analyse) -> None:
    assert of(
        analyse, 'd = pd.read_csv("a.csv").values\n' + fed("for row in d:\n    yield row[:-1], row[-1]")
    ) == [Severity.WARNING]


def test_arrays_made_in_the_program_count(analyse: Analyse) -> None:
    made = 'z = np.random.rand(1000, 8).astype("float32")\n'
    assert of(analyse, made + fed("for a, b in zip(z, z[:, 0]):\n    yield a, b")) == [Severity.WARNING]


def test_pydataset_that_slices_is_info(analyse: Analyse) -> None:
    code = """\
class Slices(tf.keras.utils.PyDataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return x[index * 8 : index * 8 + 8], y[index * 8 : index * 8 + 8]


model.fit(Slices(), epochs=3)
"""
    assert of(analyse, code) == [Severity.INFO]


def test_python_generator_input_leaves_the_place_to_it(analyse: Analyse) -> None:
    found = analyse(HEAD + fed("for a, b in zip(x, y):\n    yield a, b"))
    assert named(found, RULE)
    assert named(found, "python-generator-input") == []


def test_time_of_the_generator_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    source = PythonInput("generator", "rows", 4.0, 100, Spot("train.py", 12))
    evidence = evidence_of(
        10.0, gpu=True, python_input=(source,), buckets={"device_compute": 6.0, "input_wait": 4.0}
    )
    judged = check.judge(finding_at(check, 12), evidence)
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED


LOOP = """
optimizer = tf.keras.optimizers.Adam()

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(a) - b)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

def batches():
    while True:
        for i in range(0, len(x), 64):
            yield BATCH

source = batches()
for epoch in range(10):
    for _ in range(100):
        a, b = next(source)
        step(a, b)
"""


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ("x[i : i + 64], y[i : i + 64]", [Severity.INFO]),
        ("x[i], y[i]", [Severity.WARNING]),
        ("prepare(x[i : i + 64]), y[i : i + 64]", []),
        ("cv2.resize(x[i], (8, 8)), y[i]", []),
        ("0.1 * i, 3", []),
    ],
)
def test_batches_drawn_by_next(analyse: Analyse, batch: str, expected: list[Severity]) -> None:
    assert of(analyse, LOOP.replace("BATCH", batch)) == expected


def test_drawing_outside_of_training_is_a_look(analyse: Analyse) -> None:
    text = LOOP.replace("BATCH", "x[i : i + 64], y[i : i + 64]").replace("    step(a, b)", "    print(a, b)")
    assert of(analyse, text) == []
