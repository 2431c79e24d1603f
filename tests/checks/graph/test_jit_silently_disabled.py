from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import WhatIf

RULE = "jit-silently-disabled"
ZOOMED = SETUP.replace("tf.keras.layers.Dense(64)", "tf.keras.layers.RandomZoom(0.1)")


def test_stands_at_the_layer(analyse: Analyse) -> None:
    (finding,) = named(analyse(ZOOMED + FIT), RULE)
    assert finding.location.line == line_of(ZOOMED, "RandomZoom")
    assert "RandomZoom" in finding.message


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("explicitly off", ZOOMED + FIT.replace('"mse")', '"mse", jit_compile=False)')),
        ("eager", ZOOMED + FIT.replace('"mse")', '"mse", run_eagerly=True)')),
        ("layer that cuDNN runs", SETUP.replace("Dense(64)", "LSTM(64)") + FIT),
        ("layer that supports XLA", SETUP.replace("Dense(64)", "RandomFlip()") + FIT),
        ("never compiled", ZOOMED + "ds = ds.map(lambda x, y: (model(x), y))\n"),
    ],
)
def test_silent_where_nothing_is_lost(analyse: Analyse, what: str, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_silent_on_another_backend(analyse: Analyse) -> None:
    text = "import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n" + ZOOMED.replace("tf.keras", "keras")
    assert named(analyse(text + FIT), RULE) == []


def test_judged_by_the_run_with_xla(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    gain = WhatIf("xla", 5.0, 10.0, 2.0, 3, 0.1, 1.9, 2.1)
    judged = check.judge(finding_at(check, 3), evidence_of(what_if=(gain,)))

    assert judged is not None and judged.impact is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact.step_share == pytest.approx(0.5)
