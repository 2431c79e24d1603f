from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import WhatIf

RULE = "steps-per-execution-unset"


def test_stands_at_compile(analyse: Analyse) -> None:
    text = SETUP + FIT
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "compile")


@pytest.mark.parametrize(
    "text",
    [
        SETUP + FIT.replace('"mse")', '"mse", steps_per_execution=8)'),
        SETUP + FIT.replace('"mse")', '"mse", run_eagerly=True)'),
        SETUP + FIT.replace("batch_size=256", "batch_size=8192"),
        SETUP + FIT.replace("batch_size=256", "batch_size=unheard_of()"),
        SETUP + "model.compile('adam', 'mse')\nmodel.fit(np.zeros([20, 8]), np.zeros([20, 1]), epochs=900)\n",
        SETUP + FIT.replace("epochs=10", "epochs=10, callbacks=unheard_of()"),
        SETUP.replace("Dense(64)", "Conv1D(64, 3)") + FIT,
        SETUP.replace("Dense(64)", "Dense(4096)") + FIT,
        SETUP.replace("tf.keras.layers.Dense(64)", "unheard_of()") + FIT,
    ],
    ids=[
        "set",
        "eager",
        "long steps",
        "unknown batch",
        "one step an epoch",
        "unknown callbacks",
        "convolution",
        "wide",
        "unknown layer",
    ],
)
def test_silent(analyse: Analyse, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_a_gain_makes_it_a_warning(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    gain = WhatIf("steps-per-execution-8", 5.0, 10.0, 2.0, 3, 0.1, 1.9, 2.1)
    judged = check.judge(finding_at(check, 3), evidence_of(what_if=(gain,)))

    assert judged is not None
    assert (judged.verdict, judged.severity) == (Verdict.CONFIRMED, Severity.WARNING)
    assert check.judge(finding_at(check, 3), evidence_of()) is None
