"""What the page of validation-overhead does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import KerasCall, Spot

NAME = "validation-overhead"
HEAD = (
    "import numpy as np\nimport tensorflow as tf\n\n"
    "x, y = np.random.rand(4000, 64), np.random.rand(4000)\n"
    "xv, yv = np.random.rand(50_000, 64), np.random.rand(50_000)\n"
    "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), tf.keras.layers.Dense(1)])\n"
    "model.compile('adam', 'mse')\n"
)


def told(analyse: Analyse, text: str) -> list[int]:
    return [finding.location.line for finding in named(analyse(HEAD + text), NAME)]


def test_arrays_larger_than_those_of_training(analyse: Analyse) -> None:
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv, yv))\n") == [8]
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv[:500], yv[:500]))\n") == []


def test_capped_validation_is_fine(analyse: Analyse) -> None:
    text = "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv, yv), validation_steps=2)\n"
    assert told(analyse, text) == []


def test_usual_split_is_fine(analyse: Analyse) -> None:
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_split=0.2)\n") == []
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_split=0.5)\n") == [8]


def test_sizes_that_nobody_knows_are_fine(analyse: Analyse) -> None:
    text = (
        "xv, yv = np.load('xv.npy'), np.load('yv.npy')\n"
        "model.fit(x, y, batch_size=512, validation_data=(xv, yv))\n"
    )
    assert told(analyse, text) == []


def test_evaluate_after_every_step(analyse: Analyse) -> None:
    text = (
        "for i in range(0, 4000, 100):\n"
        "    model.train_on_batch(x[i:i + 100], y[i:i + 100])\n"
        "    {}model.evaluate(x, y, batch_size=512)\n"
    )
    assert told(analyse, text.format("")) == [10]
    assert told(analyse, text.format("if i % 1000 == 0: ")) == []


@pytest.mark.parametrize(
    ("validation", "verdict"), [(450.0, Verdict.CONFIRMED), (10.0, Verdict.CONFIRMED), (1.0, Verdict.MINOR)]
)
def test_judge_by_a_pass_over_the_validation_data(
    rule: Callable[[str], Check], validation: float, verdict: Verdict
) -> None:
    check = rule(NAME)
    fit = KerasCall("fit", 1, 0.0, Spot("train.py", 8))
    facts = {"validation_ms": validation, "epoch_steps": 5}
    judged = check.judge(finding_at(check, 8), evidence_of(10.0, keras_calls=(fit,), facts=facts))
    assert judged is not None
    assert judged.verdict is verdict
    assert judged.measures[0].value == round(validation / (validation + 50.0), 4)


def test_judge_by_calls_of_evaluate_in_the_loop(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    calls = (KerasCall("evaluate", 20, 30.0, Spot("train.py", 8), share=0.75),)
    judged = check.judge(finding_at(check, 8), evidence_of(40.0, keras_calls=calls))
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == 0.75


def test_judge_knows_nothing_where_no_validation_was_seen(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    fit = KerasCall("fit", 1, 0.0, Spot("train.py", 8))
    assert check.judge(finding_at(check, 8), evidence_of(keras_calls=(fit,), facts={"epoch_steps": 5})) is None
    other = KerasCall("fit", 1, 0.0, Spot("train.py", 9))
    facts = {"validation_ms": 450.0, "epoch_steps": 5}
    assert check.judge(finding_at(check, 8), evidence_of(keras_calls=(other,), facts=facts)) is None
