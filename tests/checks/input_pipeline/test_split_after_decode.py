"""Tests of split-after-decode beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Location, Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

RULE = "split-after-decode"


def of(analyse: Analyse, chain: str, source: str = 'tf.data.Dataset.list_files("*.jpg")') -> list[Severity]:
    code = f"""\
import tensorflow as tf

def read(x):
    return tf.io.decode_jpeg(tf.io.read_file(x)), 1.0

def scale(x):
    return tf.cast(x, tf.float32), 1.0

ds = {source}{chain}.batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


@pytest.mark.parametrize(
    "chain",
    [
        ".map(read).take(100)",
        ".map(read).skip(1)",
        ".skip(100).map(read)",
        ".shard(4, 0).map(read)",
        ".map(read).cache().skip(100)",
        ".map(scale).skip(100)",
    ],
    ids=["take stops by itself", "a header", "split first", "sharded first", "cached", "cheap map"],
)
def test_is_silent_on(chain: str, analyse: Analyse) -> None:
    assert of(analyse, chain) == []


@pytest.mark.parametrize("chain", [".map(read).skip(100)", ".map(read).shard(4, 0)", ".map(read).skip(count())"])
def test_split_behind_the_decoder(chain: str, analyse: Analyse) -> None:
    assert of(analyse, chain) == [Severity.INFO]


def test_directory_loaders_decode(analyse: Analyse) -> None:
    assert of(analyse, ".skip(100)", 'tf.keras.utils.image_dataset_from_directory("p")') == [Severity.INFO]


def test_part_of_the_decoder_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    found = finding_at(check, 9, stage=Location("train.py", 8, 1))
    stage = PipelineStage("Iterator::Root::Map", "Map", 30.0, 20, Spot("train.py", 8))
    waits = {"device_compute": 6.0, "input_wait": 4.0}
    judged = check.judge(found, evidence_of(10.0, gpu=True, pipelines=(stage,), buckets=waits))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
