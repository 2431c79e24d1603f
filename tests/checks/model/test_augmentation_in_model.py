"""Tests of augmentation-in-model beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Placement, Spot

RULE = "augmentation-in-model"


def findings(
    analyse: Analyse, layers: str, compiled: str = "", version: str = "2.21", fit: bool = True
) -> list[str]:
    code = f"""\
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((64, 64, 3)), {layers}, tf.keras.layers.Conv2D(64, 3)])
model.compile("adam", "mse"{compiled})
{"model.fit(np.zeros((64, 64, 64, 3)), np.zeros(64), epochs=3)" if fit else ""}
"""
    names = (RULE, "jit-silently-disabled", "vectorized-map-fallback")
    return [f"{found.name} {found.severity}" for found in analyse(code, version) if found.name in names]


ROTATION = "tf.keras.layers.RandomRotation(0.1)"
FLIP = "tf.keras.layers.RandomFlip()"


def test_jit_silently_disabled_has_the_word_in_keras_3(analyse: Analyse) -> None:
    assert findings(analyse, ROTATION) == ["jit-silently-disabled warning"]


def test_without_xla_it_is_this_rules(analyse: Analyse) -> None:
    assert findings(analyse, ROTATION, ", jit_compile=False") == [f"{RULE} info"]
    assert findings(analyse, ROTATION, version="2.15") == [f"{RULE} info"]


def test_versions_that_loop_over_pictures_are_anothers(analyse: Analyse) -> None:
    assert all(not found.startswith(RULE) for found in findings(analyse, ROTATION, version="2.10"))


def test_flips_are_hints(analyse: Analyse) -> None:
    assert findings(analyse, FLIP) == [f"{RULE} hint"]


def test_one_finding_for_a_model(analyse: Analyse) -> None:
    assert findings(analyse, f"{FLIP}, {ROTATION}", version="2.15") == [f"{RULE} info"]


def test_is_silent_on_models_that_nobody_trains(analyse: Analyse) -> None:
    assert findings(analyse, FLIP, fit=False) == []


def test_is_silent_without_gpu(analyse: Analyse) -> None:
    code = f"""\
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([{FLIP}, tf.keras.layers.Conv2D(64, 3)])
model.compile("adam", "mse")
model.fit(np.zeros((64, 64, 64, 3)), np.zeros(64), epochs=3)
"""
    assert named(analyse(code), RULE) == []


@pytest.mark.parametrize(("ms", "verdict"), [(4.0, Verdict.CONFIRMED), (0.1, Verdict.MINOR)])
def test_time_of_the_ops_decides(ms: float, verdict: Verdict, rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    op = Placement("ImageProjectiveTransformV3", 1, "gpu", predicted=False, spot=Spot("train.py", 4), ms=ms)
    judged = check.judge(finding_at(check, 4), evidence_of(10.0, gpu=True, placements=(op,)))
    assert judged is not None
    assert judged.verdict is verdict
    assert judged.severity in (None, Severity.WARNING)
    assert check.judge(finding_at(check, 4), evidence_of(10.0, placements=(op,))) is None
