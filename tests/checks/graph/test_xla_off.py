from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import WhatIf

RULE = "xla-off"
OFF = FIT.replace('"mse")', '"mse", jit_compile=False)')
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def test_a_step_of_ones_own_is_a_hint(analyse: Analyse) -> None:
    text = SETUP + COMPILED_STEP + LOOP
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.HINT
    assert finding.location.line in (line_of(text, "@tf.function"), line_of(text, "def train_step"))


def test_an_explicit_no_to_a_step_is_info(analyse: Analyse) -> None:
    text = SETUP + COMPILED_STEP.replace("@tf.function", "@tf.function(jit_compile=False)") + LOOP
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


def test_auto_clustering_switched_off(analyse: Analyse) -> None:
    text = SETUP + "tf.config.optimizer.set_jit(False)\n" + FIT
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("compiled step", SETUP + COMPILED_STEP.replace("function", "function(jit_compile=True)") + LOOP),
        ("default of Keras 3", SETUP + FIT),
        ("strategy", "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\nwith s.scope():\n"
         + "".join(f"    {line}\n" for line in SETUP.splitlines()[1:]) + OFF),
        ("recurrent model", SETUP.replace("Dense(64)", "LSTM(64)") + OFF),
        ("layer without XLA", SETUP.replace("Dense(64)", "RandomZoom(0.1)") + OFF),
        ("eager model", SETUP + OFF.replace("jit_compile=False", "jit_compile=False, run_eagerly=True")),
    ],
)  # fmt: skip
def test_silent_where_xla_is_on_or_would_not_help(analyse: Analyse, what: str, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_silent_before_compile_knew_the_option(analyse: Analyse) -> None:
    assert named(analyse(SETUP + FIT, tensorflow="2.7"), RULE) == []


def _xla(speedup: float, low: float, high: float) -> WhatIf:
    return WhatIf("xla", 10.0 / speedup, 10.0, speedup, 3, (high - low) / 2, low, high)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (_xla(1.5, 1.4, 1.6), Verdict.CONFIRMED),
        (_xla(1.02, 1.01, 1.03), Verdict.MINOR),
        (_xla(0.9, 0.85, 0.95), Verdict.REFUTED),
        (_xla(1.1, 0.8, 1.4), Verdict.UNMEASURED),
        (None, None),
    ],
    ids=["gain", "small gain", "loss", "noise", "not run"],
)
def test_judged_by_the_run_with_xla(
    rule: Callable[[str], Check], result: WhatIf | None, verdict: Verdict | None
) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence_of(what_if=(result,) if result else ()))

    assert (judged.verdict if judged else None) is verdict


def test_refuted_where_the_step_was_compiled_anyway(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence_of(facts={"jit": True}))
    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_an_explicit_no_to_a_model_with_a_layer_of_its_own_is_info(analyse: Analyse) -> None:
    text = SETUP + (
        "class Scale(tf.keras.layers.Layer):\n    def call(self, x):\n        return 2 * x\n"
        "net = tf.keras.Sequential([tf.keras.layers.Dense(512), Scale(), tf.keras.layers.Dense(1)])\n"
        "net.compile('adam', 'mse', jit_compile=False)\nnet.fit(ds)\n"
    )
    (finding,) = named(analyse(text), RULE)
    assert (finding.severity, finding.location.line) == (Severity.INFO, line_of(text, "jit_compile"))
