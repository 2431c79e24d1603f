"""Tests of per-sample-windows beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

RULE = "per-sample-windows"
ARRAY = "tf.data.Dataset.from_tensor_slices(series)"


def of(analyse: Analyse, chain: str, source: str = ARRAY, use: str = "model.fit(ds, epochs=3)") -> list[Severity]:
    code = f"""\
import numpy as np
import tensorflow as tf

series = np.load("series.npy")
ds = {source}{chain}.batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
{use}
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


LOUD = ".window(9, shift=1).flat_map(lambda w: w.batch(9))"


def test_overlapping_windows_are_loud(analyse: Analyse) -> None:
    assert of(analyse, LOUD) == [Severity.WARNING]
    assert of(analyse, LOUD.replace("flat_map", "interleave")) == [Severity.WARNING]


def test_windows_of_pairs(analyse: Analyse) -> None:
    zipped = "tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(series), tf.data.Dataset.range(9)))"
    pairs = ".window(9, shift=1).flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(9), b.batch(9))))"
    assert of(analyse, pairs, zipped) == [Severity.WARNING]


def test_windows_apart_or_cached_are_info(analyse: Analyse) -> None:
    assert of(analyse, LOUD.replace("shift=1", "shift=9")) == [Severity.INFO]
    assert of(analyse, LOUD + ".cache()") == [Severity.INFO]


@pytest.mark.parametrize(
    "source",
    ['tf.data.TextLineDataset("a.csv")', "tf.data.Dataset.from_generator(rows, output_types=tf.float32)"],
)
def test_is_silent_on_streams(source: str, analyse: Analyse) -> None:
    assert of(analyse, LOUD, source) == []


def test_is_silent_without_windows_and_on_prediction(analyse: Analyse) -> None:
    assert of(analyse, ".flat_map(lambda w: tf.data.Dataset.from_tensors(w).batch(9))") == []
    assert of(analyse, LOUD, use="model.predict(ds)") == []


def test_part_of_the_window_stages_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    stage = PipelineStage("Iterator::Root::FlatMap", "FlatMap", 30.0, 20, Spot("train.py", 5))
    waits = {"device_compute": 6.0, "input_wait": 4.0}
    judged = check.judge(finding_at(check, 5), evidence_of(10.0, gpu=True, pipelines=(stage,), buckets=waits))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert check.judge(finding_at(check, 5), evidence_of(10.0, gpu=True, buckets=waits)) is None
