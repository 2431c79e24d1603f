"""Tests of keras-layer-in-data-loader beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PythonInput, Spot

RULE = "keras-layer-in-data-loader"

HEAD = """\
import gymnasium
import numpy as np
import tensorflow as tf

flip = tf.keras.layers.RandomFlip()
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
x = np.load("x.npy")
"""


def of(analyse: Analyse, code: str) -> list[Severity]:
    return [finding.severity for finding in named(analyse(HEAD + code, select=(RULE,)), RULE)]


def generator(body: str, use: str = "model.fit(batches(), epochs=2)") -> str:
    return f"def batches():\n    while True:\n        yield {body}, 1.0\n\n\n{use}\n"


def test_ops_and_layers_in_a_generator(analyse: Analyse) -> None:
    assert of(analyse, generator("tf.image.resize(x, (9, 9))")) == [Severity.WARNING]
    assert of(analyse, generator("flip(x)")) == [Severity.WARNING]
    assert of(analyse, generator("model(x)")) == [Severity.WARNING]


def test_a_cpu_device_scope_changes_nothing(analyse: Analyse) -> None:
    code = """\
def batches():
    while True:
        with tf.device("/cpu:0"):
            a = tf.image.resize(x, (9, 9))
        yield a, 1.0


model.fit(batches(), epochs=2)
"""
    assert of(analyse, code) == [Severity.WARNING]


@pytest.mark.parametrize(
    "body",
    [
        "np.flip(x)",
        "tf.constant(x)",
        "tf.cast(x, tf.float32)",
        "tf.io.decode_jpeg(tf.io.read_file('a.jpg'))",
        "tf.strings.length('a')",
        "tf.compat.as_text(b'a')",
    ],
)
def test_is_silent_on_what_no_gpu_computes(body: str, analyse: Analyse) -> None:
    assert of(analyse, generator(body)) == []


def test_is_silent_in_traced_functions_and_maps(analyse: Analyse) -> None:
    traced = "@tf.function\ndef prepare(a):\n    return tf.image.resize(a, (9, 9))\n\n\n"
    assert of(analyse, traced + generator("prepare(x)")) == []
    mapped = "ds = tf.data.Dataset.range(9).map(lambda a: tf.image.resize(x, (9, 9))).batch(2)\nmodel.fit(ds)\n"
    assert of(analyse, mapped) == []


def test_is_silent_on_prediction(analyse: Analyse) -> None:
    assert of(analyse, generator("flip(x)", "model.predict(batches())")) == []


def test_numpy_function_is_eager_and_py_function_stays_on_the_cpu(analyse: Analyse) -> None:
    code = """\
def prepare(a):
    return flip(a)


ds = tf.data.Dataset.range(9).map(lambda a: tf.numpy_function(prepare, [a], tf.float32)).batch(2)
model.fit(ds, epochs=2)
"""
    assert of(analyse, code) == [Severity.WARNING]
    assert of(analyse, code.replace("numpy_function", "py_function")) == []


def test_simulated_samples_need_their_model(analyse: Analyse) -> None:
    code = """\
def batches():
    env = gymnasium.make("CartPole-v1")
    while True:
        state, _ = env.reset()
        yield model(state), 1.0


model.fit(batches(), epochs=2)
"""
    assert of(analyse, code) == [Severity.INFO]


def test_time_of_the_loader_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    source = PythonInput("PyDataset", "Photos", 4.0, 100, Spot("train.py", 5))
    waits = {"device_compute": 6.0, "input_wait": 4.0}
    judged = check.judge(finding_at(check, 5), evidence_of(10.0, gpu=True, python_input=(source,), buckets=waits))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
