from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import SETUP, STEP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Location, Severity, Verdict
from tflint_gpu.trace.evidence import Eager, Spot, WhatIf

RULE = "eager-train-step"
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def test_stands_from_the_function_to_its_tape(analyse: Analyse) -> None:
    text = SETUP + STEP + LOOP
    (finding,) = named(analyse(text), RULE)

    assert finding.location.line == line_of(text, "def train_step")
    assert finding.location.end_line == line_of(text, "GradientTape")
    assert finding.related[0].location.line == line_of(text, "for x, y")


def test_stands_at_the_function_that_applies_what_another_one_took(analyse: Analyse) -> None:
    text = SETUP + (
        "optimizer = tf.keras.optimizers.SGD()\n"
        "def gradients(x, y):\n    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean(model(x) - y)\n"
        "    return tape.gradient(loss, model.trainable_variables)\n\n"
        "def update(x, y):\n    found = gradients(x, y)\n"
        "    optimizer.apply_gradients(zip(found, model.trainable_variables))\n\n"
        "def main():\n    for x, y in ds:\n        update(x, y)\n\nmain()\n"
    )
    (finding,) = named(analyse(text), RULE)

    assert finding.location.line == line_of(text, "def update")


@pytest.mark.parametrize(
    "wrapping",
    [
        "train_step = tf.function(train_step)\n",
        "import functools\ntrain_step = functools.partial(tf.function, reduce_retracing=True)(train_step)\n",
        "@tf.function\ndef outer(x, y):\n    return inner(x, y)\ninner, train_step = train_step, outer\n",
    ],
    ids=["call form", "partial", "called by a graph function"],
)
def test_silent_where_a_graph_function_surrounds_the_step(analyse: Analyse, wrapping: str) -> None:
    assert named(analyse(SETUP + STEP + wrapping + LOOP), RULE) == []


def test_silent_without_a_loop_since_one_gradient_is_no_training(analyse: Analyse) -> None:
    assert named(analyse(SETUP + STEP + "x, y = next(iter(ds))\ntrain_step(x, y)\n"), RULE) == []


def test_silent_under_run_functions_eagerly_which_is_another_rules(analyse: Analyse) -> None:
    text = SETUP + "tf.config.run_functions_eagerly(True)\n" + STEP + LOOP
    assert named(analyse(text), RULE) == []


def test_quiet_where_an_environment_is_stepped(analyse: Analyse) -> None:
    text = (
        SETUP
        + STEP
        + "import gymnasium\nenv = gymnasium.make('CartPole-v1')\n"
        + "for x, y in ds:\n    env.step(0)\n    train_step(x, y)\n"
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


def test_quiet_where_weights_are_put_back_to_learn_to_learn(analyse: Analyse) -> None:
    text = (
        SETUP
        + STEP
        + (
            "for task in range(1000):\n    before = model.get_weights()\n"
            "    for x, y in ds:\n        train_step(x, y)\n"
            "    after = model.get_weights()\n"
            "    model.set_weights([b + 0.1 * (a - b) for a, b in zip(after, before)])\n"
            "for x, y in ds.take(100):\n    train_step(x, y)\n"
        )
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


def test_folds_that_start_from_the_same_weights_are_no_such_thing(analyse: Analyse) -> None:
    text = (
        SETUP
        + STEP
        + (
            "start = model.get_weights()\n"
            "for fold in range(1000):\n    model.set_weights(start)\n"
            "    for x, y in ds:\n        train_step(x, y)\n"
        )
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.WARNING]


def test_quiet_where_a_switch_compiles_the_step(analyse: Analyse) -> None:
    text = (
        SETUP
        + STEP
        + (
            "import sys\n\ndef epoch(data):\n    for x, y in data:\n        train_step(x, y)\n\n"
            "if len(sys.argv) < 2:\n    epoch = tf.function(epoch)\nfor _ in range(9):\n    epoch(ds)\n"
        )
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


def test_silent_in_a_layer_that_a_step_may_call(analyse: Analyse) -> None:
    text = SETUP + (
        "class Local(tf.keras.layers.Layer):\n"
        "    def learn(self, x, y):\n"
        "        for _ in range(50):\n"
        "            with tf.GradientTape() as tape:\n                loss = tf.reduce_mean(self(x) - y)\n"
        "            optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])\n"
    )
    assert named(analyse(text), RULE) == []
    assert len(named(analyse(text + "for x, y in ds:\n    Local().learn(x, y)\n"), RULE)) == 1


def test_silent_for_an_optimizer_made_of_optimizers(analyse: Analyse) -> None:
    text = SETUP + (
        "class Both(tf.keras.optimizers.Optimizer):\n"
        "    def __init__(self):\n        self.parts = [tf.keras.optimizers.Adam(), tf.keras.optimizers.SGD()]\n"
        "    def apply_gradients(self, pairs):\n"
        "        for part in self.parts:\n            part.apply_gradients(pairs)\n"
    )
    assert named(analyse(text), RULE) == []


def test_quiet_where_a_picture_is_optimised(analyse: Analyse) -> None:
    text = SETUP + (
        "image = tf.Variable(tf.zeros([1, 8]))\n"
        "for i in range(1000):\n"
        "    with tf.GradientTape() as tape:\n"
        "        loss = tf.reduce_mean(model(image))\n"
        "    optimizer.apply_gradients([(tape.gradient(loss, image), image)])\n"
    )
    assert all(finding.severity <= Severity.INFO for finding in named(analyse(text), RULE))


@pytest.mark.parametrize(
    ("ops", "share", "verdict"),
    [(54.0, 0.8, Verdict.CONFIRMED), (3.0, 0.2, Verdict.REFUTED), (40.0, 0.02, Verdict.MINOR)],
)
def test_judged_by_eager_ops(rule: Callable[[str], Check], ops: float, share: float, verdict: Verdict) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence_of(eager=Eager(ops, share)))

    assert judged is not None
    assert judged.verdict is verdict


def test_gain_is_bounded_by_idle_time_of_the_gpu(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    evidence = evidence_of(gpu=True, buckets={"device_compute": 7.0, "host": 3.0}, eager=Eager(54, 0.9))
    judged = check.judge(finding_at(check, 3), evidence)

    assert judged is not None and judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.3)


def tried(low: float, line: int, function: str = "step") -> WhatIf:
    """Return a run with the function on `line` as a graph, whose gain is at least `low`."""
    return WhatIf(
        "tf-function", 5.0, 10.0, 2.0, 3, 0.05, low, 2.1, spots=(Spot("train.py", line, None, function),)
    )


def test_judged_by_the_step_as_a_graph_where_that_was_tried(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    eager = Eager(54, 0.9)
    judged = check.judge(finding_at(check, 3), evidence_of(eager=eager, what_if=(tried(1.9, 3),)))
    assert judged is not None and judged.impact is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact.basis == "what-if: tf function"

    slower = replace(tried(0.5, 3), speedup=0.7, high=0.9)
    judged = check.judge(finding_at(check, 3), evidence_of(eager=eager, what_if=(slower,)))
    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_a_decorated_step_is_known_by_its_name(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    finding = check.at(Location("train.py", 3, 1), "a suspicion", qualname="Trainer.step")
    judged = check.judge(finding, evidence_of(eager=Eager(54, 0.9), what_if=(tried(1.9, 2),)))
    assert judged is not None and judged.impact is not None
    assert judged.impact.basis == "what-if: tf function"


def test_another_step_as_a_graph_says_nothing_of_this_one(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    evidence = evidence_of(eager=Eager(54, 0.9), what_if=(tried(1.9, 30, "other"),))
    judged = check.judge(finding_at(check, 3), evidence)
    assert judged is not None and judged.impact is not None
    assert judged.impact.basis.startswith("trace: eager ops")


def test_not_judged_where_eager_ops_were_not_counted(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    assert check.judge(finding_at(check, 3), evidence_of()) is None
