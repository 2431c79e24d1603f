"""Tests of epoch-boundary-stall beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, KerasCall, Spot

RULE = "epoch-boundary-stall"


def of(analyse: Analyse, fit: str) -> list[Severity]:
    code = f"""\
import numpy as np
import tensorflow as tf

x = np.zeros((1000, 8), "float32")
y = np.load("y.npy")
ds = tf.data.Dataset.from_tensor_slices((x, x))
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
model.fit({fit})
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


@pytest.mark.parametrize(
    "fit",
    [
        "ds.repeat().batch(8), steps_per_epoch=1, epochs=100",
        "ds.repeat().batch(8), steps_per_epoch=2, epochs=100",
        "x, x, batch_size=1000, epochs=100",
        "x, x, batch_size=x.shape[0], epochs=100",
        "y, y, batch_size=len(y), epochs=100",
        "ds.batch(1000).prefetch(1), epochs=100",
        "tf.data.Dataset.from_tensors((x, x)), epochs=100",
    ],
)
def test_epochs_of_a_step_or_two(fit: str, analyse: Analyse) -> None:
    assert of(analyse, fit) == [Severity.INFO]


@pytest.mark.parametrize(
    "fit",
    [
        "x, x, batch_size=1000, epochs=3",
        "x, x, batch_size=100, epochs=100",
        "y, y, batch_size=1000, epochs=100",
        "ds.repeat().batch(8), steps_per_epoch=100, epochs=100",
        "ds.repeat().batch(8), steps_per_epoch=count(), epochs=100",
        "ds.repeat().batch(1000), epochs=100",
        "tf.data.Dataset.from_tensors((x, x)).repeat(100), epochs=100",
    ],
    ids=["a short look", "many steps", "unknown rows", "long", "unknown steps", "endless", "repeated"],
)
def test_is_silent_on(fit: str, analyse: Analyse) -> None:
    assert of(analyse, fit) == []


def boundary(steps: int, pause: float) -> Evidence:
    call = KerasCall("fit", 1, 100.0, Spot("train.py", 9))
    return evidence_of(10.0, facts={"epoch_gap_ms": pause, "epoch_steps": steps}, keras_calls=(call,))


def test_pause_against_the_epoch_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    found = finding_at(check, 9)
    verdicts = [judged.verdict for pause in (40.0, 0.1) if (judged := check.judge(found, boundary(1, pause)))]
    assert verdicts == [Verdict.CONFIRMED, Verdict.MINOR]
    assert check.judge(found, evidence_of(10.0)) is None


def test_long_pauses_are_observed_in_real_epochs_alone(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    assert [finding.verdict for finding in check.observe(boundary(100, 500.0))] == [Verdict.OBSERVED]
    assert list(check.observe(boundary(10, 500.0))) == []
    assert list(check.observe(boundary(100, 50.0))) == []


def test_loops_of_ones_own_are_seen_by_their_first_step(rule: Callable[[str], Check]) -> None:
    evidence = evidence_of(10.0, facts={"epoch_start_ms": 510.0, "epoch_steps": 100.0})
    assert len(list(rule(RULE).observe(evidence))) == 1
