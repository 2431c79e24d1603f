"""TFG105: Python in tf.data functions, where it stands and when it is paid once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import PythonInput, Spot

HEAD = """
import functools
import numpy as np
import tensorflow as tf
from PIL import Image

names, y = ["a.png", "b.png"], np.zeros(2)


def load(name, size=64):
    return np.asarray(Image.open(name).resize((size, size)), "float32")


def wrapped(name, label):
    image = tf.numpy_function(functools.partial(load, size=32), [name], tf.float32)
    return image, label


model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
ds = tf.data.Dataset.from_tensor_slices((names, y))
"""


def found(analyse: Analyse, rest: str) -> list[Finding]:
    return analyse(HEAD + rest, None, ("python-op-in-map",))


def test_finding_stands_at_the_wrapper_and_names_the_twin(analyse: Analyse) -> None:
    inside, finding = found(analyse, "model.fit(ds.map(wrapped).batch(64).prefetch(2), epochs=3)")

    assert (inside.location.line, inside.severity) == (line_of(HEAD, r"Image\.open"), Severity.INFO)
    assert finding.location.line == line_of(HEAD, "numpy_function")
    assert finding.severity is Severity.WARNING
    assert "tf.io.decode_image" in finding.message
    assert finding.detail["names"] == ("load",)


def test_inside_an_interleave(analyse: Analyse) -> None:
    inner = "lambda n, l: tf.data.Dataset.from_tensors((n, l)).map(wrapped)"

    findings = found(analyse, f"model.fit(ds.interleave({inner}).batch(64).prefetch(2), epochs=3)")
    assert line_of(HEAD, "numpy_function") in [finding.location.line for finding in findings]


@pytest.mark.parametrize(
    "rest",
    [
        "model.fit(ds.map(wrapped).cache().batch(64).prefetch(2), epochs=3)",
        "model.fit(np.zeros((2, 8)), y, validation_data=ds.map(wrapped).batch(64))",
    ],
)
def test_paid_once_or_in_validation_is_info(analyse: Analyse, rest: str) -> None:
    assert [finding.severity for finding in found(analyse, rest)] == [Severity.INFO]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("model.predict(ds.map(wrapped).batch(64))", id="only prediction"),
        pytest.param("for image, label in ds.map(wrapped).take(1):\n    print(image.shape)", id="a look"),
        pytest.param("model.fit(np.stack([load(name) for name in names]), y, batch_size=64)", id="no pipeline"),
    ],
)
def test_is_silent_on(analyse: Analyse, rest: str) -> None:
    assert found(analyse, rest) == []


@pytest.mark.parametrize(("waiting", "verdict"), [(5.0, Verdict.CONFIRMED), (0.1, Verdict.MINOR)])
def test_wait_for_input_judges(rule: Callable[[str], Check], waiting: float, verdict: Verdict) -> None:
    check = rule("python-op-in-map")
    source = PythonInput("numpy_function", "load", 8.0, 640, Spot("train.py", 15))
    evidence = evidence_of(gpu=True, buckets={"input_wait": waiting}, python_input=(source,))

    judged = check.judge(finding_at(check, 15), evidence)

    assert judged is not None
    assert judged.verdict is verdict
