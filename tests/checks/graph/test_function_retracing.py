from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Spot, TracedFunction

RULE = "function-retracing"

#: A step that takes one more argument.
SCALED = COMPILED_STEP.replace("(x, y)", "(x, y, scale)", 1).replace("loss = tf", "loss = scale * tf")


def test_call_form_in_a_loop(analyse: Analyse) -> None:
    text = SETUP + "for x, y in ds:\n    tf.function(model)(x)\n"
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "tf.function")


@pytest.mark.parametrize(
    "argument", ["float(step)", "step + 1", "0.1 * step", "math.cos(0.1 * step)", "min(1.0, step / 1000)"]
)
def test_numbers_computed_from_the_round(analyse: Analyse, argument: str) -> None:
    text = SETUP + SCALED + f"import math\nfor step, (x, y) in enumerate(ds):\n    train_step(x, y, {argument})\n"
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "argument",
    ["0.5", "True", "tf.constant(step)", "tf.cast(step, tf.float32)", "model", "unheard_of(step)", "min(step, 2)"],
)
def test_silent_for_arguments_that_do_not_change_or_are_not_known(analyse: Analyse, argument: str) -> None:
    text = SETUP + SCALED + f"for step, (x, y) in enumerate(ds):\n    train_step(x, y, {argument})\n"
    assert named(analyse(text), RULE) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("step = 0\nfor x, y in ds:\n    step += 1\n    train_step(x, y, step)\n", 1),
        ("rate = 0.1\nfor x, y in ds:\n    train_step(x, y, rate)\n    rate = rate * 0.9\n", 1),
        (
            "i = 0\nfor e in range(9):\n    for x, y in ds:\n        train_step(x, y, i)\n        i += 1\n",
            1,
        ),
        (
            "r = 0.1\nfor e in range(9):\n    for x, y in ds:\n        train_step(x, y, r)\n    r *= 0.9\n",
            0,
        ),
        ("first = True\nfor x, y in ds:\n    train_step(x, y, first)\n    first = False\n", 0),
        ("rate = 0.1\nfor x, y in ds:\n    train_step(x, y, rate)\n    if odd(x):\n        rate *= 0.9\n", 0),
    ],
    ids=["counter", "decay", "counter across epochs", "once an epoch", "two values", "only sometimes"],
)
def test_counters(analyse: Analyse, text: str, count: int) -> None:
    assert len(named(analyse(SETUP + SCALED + text), RULE)) == count


def test_silent_with_an_input_signature(analyse: Analyse) -> None:
    signature = "@tf.function(input_signature=[tf.TensorSpec(None)] * 3)"
    text = SETUP + SCALED.replace("@tf.function", signature)
    assert named(analyse(text + "for i, (x, y) in enumerate(ds):\n    train_step(x, y, i)\n"), RULE) == []


def test_quiet_for_one_call_an_epoch(analyse: Analyse) -> None:
    text = SETUP + (
        "@tf.function\n"
        "def train_epoch(ds, epoch):\n"
        "    for x, y in ds:\n"
        "        with tf.GradientTape() as tape:\n"
        "            loss = epoch * tf.reduce_mean(tf.square(model(x) - y))\n"
        "        gradients = tape.gradient(loss, model.trainable_variables)\n"
        "        optimizer.apply_gradients(zip(gradients, model.trainable_variables))\n"
        "for epoch in range(100):\n"
        "    train_epoch(ds, epoch)\n"
    )
    assert all(finding.severity <= Severity.INFO for finding in named(analyse(text), RULE))


def test_silent_for_an_epoch_number_in_the_loop_over_batches(analyse: Analyse) -> None:
    text = SETUP + SCALED + "for epoch in range(9):\n    for x, y in ds:\n        train_step(x, y, epoch)\n"
    assert named(analyse(text), RULE) == []


def test_silent_where_the_function_is_kept(analyse: Analyse) -> None:
    text = SETUP + (
        "import functools\n"
        "@functools.lru_cache\n"
        "def compiled():\n"
        "    return tf.function(lambda x: model(x))\n"
        "for x, y in ds:\n"
        "    compiled()(x)\n"
    )
    assert named(analyse(text), RULE) == []


def test_silent_where_a_flag_lets_it_be_made_once(analyse: Analyse) -> None:
    text = SETUP + (
        "class Trainer:\n"
        "    def __init__(self):\n        self.ready = False\n"
        "    def train_on(self, x):\n"
        "        if self.ready is False:\n"
        "            self.step = tf.function(lambda x: model(x))\n            self.ready = True\n"
        "        return self.step(x)\n"
        "trainer = Trainer()\n"
        "for x, y in ds:\n    trainer.train_on(x)\n"
    )
    assert named(analyse(text), RULE) == []


def _traced(again: int, trace_ms: float | None = 400.0) -> TracedFunction:
    return TracedFunction("train_step", 1 + again, again, 20, spot=Spot("train.py", 4), trace_ms=trace_ms)


@pytest.mark.parametrize(
    ("again", "verdict"), [(0, Verdict.REFUTED), (19, Verdict.CONFIRMED)], ids=["steady", "every step"]
)
def test_judged_by_traces_after_warm_up(rule: Callable[[str], Check], again: int, verdict: Verdict) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 4), evidence_of(step_ms=30.0, functions=(_traced(again),)))

    assert judged is not None
    assert judged.verdict is verdict


def test_minor_where_one_trace_disappears_in_the_run(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 4), evidence_of(step_ms=100.0, functions=(_traced(1, trace_ms=20.0),)))
    assert judged is not None
    assert judged.verdict is Verdict.MINOR


def test_graph_building_counts_with_the_tracing(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    evidence = evidence_of(step_ms=100.0, functions=(_traced(19),), buckets={"compile": 90.0, "host": 10.0})
    judged = check.judge(finding_at(check, 4), evidence)

    assert judged is not None and judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.9)


def test_found_again_by_name_where_the_call_is_reported(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 40, name="train_step"), evidence_of(functions=(_traced(19),)))

    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert check.judge(finding_at(check, 40, name="other"), evidence_of(functions=(_traced(19),))) is None


def test_quiet_for_a_function_made_once_an_epoch(analyse: Analyse) -> None:
    text = SETUP + (
        "def run_epoch():\n"
        "    @tf.function\n"
        "    def forward(x):\n"
        "        return model(x)\n"
        "    for x, y in ds:\n"
        "        forward(x)\n"
        "for epoch in range({}):\n"
        "    run_epoch()\n"
    )
    (found,) = named(analyse(text.format(40)), RULE)
    assert (found.severity, found.location.line) == (Severity.INFO, line_of(text, "@tf.function"))
    assert named(analyse(text.format(2)), RULE) == []


CHANGED = "shape of argument 1 changed: float32 (32, 17, 8), then float32 (32, 23, 8)"


def _padded(again: int, *causes: str, **parts: object) -> TracedFunction:
    """Return a function called on line 9 that was traced again for its shapes, at a cost of 12 ms a step."""
    known = TracedFunction(
        "train_step", 1 + again, again, 20, spot=Spot("train.py", 4), caller=Spot("train.py", 9)
    )
    return replace(known, causes=causes or (CHANGED,), retrace_ms=12.0, **parts)  # type: ignore[arg-type]


def test_batches_padded_by_hand_are_observed_at_the_call_with_what_changed(rule: Callable[[str], Check]) -> None:
    (found,) = rule(RULE).observe(evidence_of(step_ms=30.0, functions=(_padded(15),)))
    assert found.verdict is Verdict.OBSERVED
    assert (found.location.line, found.related[0].location.line) == (9, 4)
    assert "train_step was traced again 15 times" in found.message
    assert "shape of argument 1 changed" in found.message
    assert len(found.message) < 200
    assert found.impact is not None
    assert found.impact.step_share == 0.4


@pytest.mark.parametrize(
    "traced",
    [
        _padded(1),
        _padded(15, "a new tf.function object was made", CHANGED),
        replace(_padded(15), retrace_ms=0.3),
        replace(_padded(15), caller=None, spot=None),
    ],
    ids=["last batch", "models one after another", "cheap", "of Keras itself"],
)
def test_nothing_is_observed(rule: Callable[[str], Check], traced: TracedFunction) -> None:
    assert list(rule(RULE).observe(evidence_of(step_ms=30.0, functions=(traced,)))) == []


def test_a_long_cause_is_cut(rule: Callable[[str], Check]) -> None:
    (found,) = rule(RULE).observe(evidence_of(step_ms=30.0, functions=(_padded(15, "x" * 300),)))
    assert len(found.message) < 200


def test_no_place_is_offered_where_another_function_makes_it(analyse: Analyse) -> None:
    text = SETUP + (
        "def make():\n    @tf.function\n    def step(x):\n        return model(x)\n\n    return step\n\n"
        "for x, y in ds:\n    make()(x)\n"
    )
    (finding,) = named(analyse(text), RULE)
    assert finding.fix is None
    assert "a function that the loop calls makes it" in finding.unfixable
