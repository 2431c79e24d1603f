"""Tests of host-widening-cast beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Copies

RULE = "host-widening-cast"


def of(analyse: Analyse, source: str, body: str = "return x, 1.0") -> list[Severity]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    code = f"""\
import numpy as np
import tensorflow as tf

def prepare(x):
{lines}
ds = {source}.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


FILES = 'tf.data.Dataset.list_files("*.jpg")'
DECODE = "x = tf.io.decode_jpeg(tf.io.read_file(x))\n"

SILENT = {
    "resized by bilinear before": "x = tf.image.resize(x, (224, 224))\nreturn tf.cast(x, tf.float32), 1.0",
    "resized after": "x = tf.cast(x, tf.float32)\nreturn tf.image.resize(x, (224, 224)), 1.0",
    "augmented in floats": "x = tf.cast(x, tf.float32)\nreturn tf.image.random_brightness(x, 0.1), 1.0",
    "small": "x = tf.image.resize(x, (32, 32), method='nearest')\nreturn tf.cast(x, tf.float32), 1.0",
    "bytes kept": "return x, 1.0",
    "integers": "return tf.cast(x, tf.int32), 1.0",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_is_silent_on_pictures(body: str, analyse: Analyse) -> None:
    assert of(analyse, FILES, DECODE + body) == []


def test_last_cast_and_cast_before_a_crop(analyse: Analyse) -> None:
    assert of(analyse, FILES, DECODE + "return tf.cast(x, tf.float32) / 255.0, 1.0") == [Severity.INFO]
    crop = "x = tf.image.convert_image_dtype(x, tf.float32)\nreturn tf.image.random_crop(x, (9, 9, 3)), 1.0"
    assert of(analyse, FILES, DECODE + crop) == [Severity.INFO]


def test_labels_are_no_pictures(analyse: Analyse) -> None:
    assert of(analyse, FILES, DECODE + "return x, tf.cast(tf.constant(1), tf.float32)") == []


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ("np.random.rand(100, 64, 64, 3)", [Severity.INFO]),
        ("np.random.rand(100, 8)", []),
        ("np.random.rand(100, 64, 64, 3).astype('float32')", []),
        ("np.load('x.npy')", []),
        ("np.load('x.npy').astype('float64')", [Severity.INFO]),
        ("np.random.randint(0, 9, (100, 64, 64, 3))", []),
    ],
)
def test_doubles(array: str, expected: list[Severity], analyse: Analyse) -> None:
    assert of(analyse, f"tf.data.Dataset.from_tensor_slices({array})") == expected


def test_doubles_that_are_meant_are_float64_computes_matter(analyse: Analyse) -> None:
    source = "tf.keras.backend.set_floatx('float64') or 1; ds = tf.data.Dataset.from_tensor_slices("
    code = f"{source}np.random.rand(100, 64, 64, 3))"
    assert of(analyse, code) == []


def test_one_hot_of_many_classes(analyse: Analyse) -> None:
    assert of(analyse, FILES, "return tf.one_hot(1, 20_000), 1.0") == [Severity.INFO]
    assert of(analyse, FILES, "return tf.one_hot(1, 10), 1.0") == []


def test_copies_decide_and_a_cpu_cannot_tell(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    found = finding_at(check, 5, share=0.75)
    buckets = {"device_compute": 6.0, "host_to_device": 4.0}
    judged = check.judge(found, evidence_of(10.0, gpu=True, buckets=buckets, copies=Copies(1e6)))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.3)
    assert check.judge(found, evidence_of(10.0, buckets=buckets)) is None
