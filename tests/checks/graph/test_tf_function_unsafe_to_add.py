from __future__ import annotations

import re

import pytest

from tests.checks.conftest import Analyse, line_of, named
from tests.checks.snippets import COMPILED_STEP, SETUP, STEP
from tflint_gpu.findings import Severity

RULE = "tf-function-unsafe-to-add"
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def with_line(line: str, before: str = "") -> str:
    """Return a training program whose step has one more line, before it returns."""
    return SETUP + before + STEP.replace("    return loss", f"    {line}\n    return loss") + LOOP


@pytest.mark.parametrize(
    ("line", "before", "reason"),
    [
        ("print(loss)", "", "print() would run when"),
        ("losses.append(loss)", "losses = []\n", "changes a list from outside"),
        ("value = loss.numpy()", "", ".numpy() has no value"),
        ("value = float(loss)", "", "float() of a tensor"),
        ("if loss > 3: pass", "", "a branch on a tensor"),
        ("global count; count = 1", "count = 0\n", "writes count outside"),
        ("model.seen = 1", "", "sets an attribute"),
        ("seen['x'] = loss", "seen = {}\n", "changes a list or dict from outside"),
        ("noise = np.random.rand(3)", "", "NumPy computes while"),
        ("begun = time.time()", "import time\n", "time.time is Python"),
        ("v = tf.Variable(0.0)", "", "makes a variable"),
        ("extra = tf.keras.layers.Dense(3)", "", "makes Dense anew"),
        ("helper(loss)", "def helper(t):\n    print(t)\n", "print() would run when"),
        ("for row in x: pass", "", "loops over x in Python"),
        ("tf.summary.scalar('loss', loss)", "", "a tensor as its step"),
    ],
)
def test_each_line_that_tracing_would_not_keep(analyse: Analyse, line: str, before: str, reason: str) -> None:
    text = with_line(line, before)
    findings = named(analyse(text), RULE)

    assert [finding for finding in findings if reason in finding.message], [f.message for f in findings]
    assert all(finding.severity is Severity.INFO for finding in findings)
    assert all(finding.message.startswith("Change this line before") for finding in findings)
    where = "print(t)" if "helper" in line else line
    assert line_of(text, re.escape(where)) in [finding.location.line for finding in findings]


@pytest.mark.parametrize(
    "line",
    [
        "tf.print(loss)",
        "parts = []; parts.append(loss)",
        "named = {}; named['loss'] = loss",
        "total = sum([loss, loss]) / len([1, 2])",
        "for layer in range(3): loss = loss + 0.0",
        "metric.update_state(loss)",
        "loss = scaled(loss)",
        "counter.assign_add(1)",
    ],
)
def test_silent_on_what_tracing_keeps(analyse: Analyse, line: str) -> None:
    before = "metric = tf.keras.metrics.Mean()\ncounter = tf.Variable(0)\ndef scaled(t):\n    return 2.0 * t\n"
    findings = analyse(with_line(line, before))

    assert [finding.message for finding in named(findings, RULE)] == []
    (eager,) = named(findings, "eager-train-step")
    assert eager.fix is not None
    assert eager.fix.safety == "unsafe"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("for i, (x, y) in enumerate(ds):\n    train_step(x, y * i)\n", ""),
        ("for i, (x, y) in enumerate(ds):\n    train_step(x, i)\n", "a Python number that changes"),
        ("for x, y in batches:\n    train_step(x, y)\n", "what is passed here is not known"),
    ],
)
def test_arguments_that_would_trace_anew(analyse: Analyse, call: str, reason: str) -> None:
    text = SETUP + "from somewhere import batches\n" + STEP + call
    found = named(analyse(text), RULE)

    assert bool(found) == bool(reason)
    assert all(reason in finding.message for finding in found)
    assert all((finding.severity is Severity.HINT) == ("not known" in reason) for finding in found)


@pytest.mark.parametrize("line", ["unknown.thing(loss)", "loss = unknown.loss(loss)", "given(loss)"])
def test_what_is_not_known_is_a_hint_and_keeps_the_fix_away(analyse: Analyse, line: str) -> None:
    findings = analyse(with_line(line, "import unknown\nfrom somewhere import given\n"))

    (finding,) = named(findings, RULE)
    assert finding.severity is Severity.HINT
    assert finding.message.startswith("Look at this line before")
    (eager,) = named(findings, "eager-train-step")
    assert eager.fix is None
    assert "is not known" in eager.unfixable


def test_silent_on_a_step_that_is_eager_by_its_method(analyse: Analyse) -> None:
    drive = "env = gym.make('Pendulum-v1')\nfor x, y in ds:\n    env.step(0)\n    train_step(x, y)\n"
    text = "import gymnasium as gym\n" + with_line("print(loss)").removesuffix(LOOP) + drive
    findings = analyse(text)

    assert [finding.severity for finding in named(findings, "eager-train-step")] == [Severity.INFO]
    assert named(findings, RULE) == []


def test_silent_where_the_step_is_traced_already(analyse: Analyse) -> None:
    assert (
        named(analyse(SETUP + COMPILED_STEP.replace("    return", "    print(loss)\n    return") + LOOP), RULE)
        == []
    )


def test_a_function_that_calls_itself(analyse: Analyse) -> None:
    text = with_line("helper(loss)", "def helper(t):\n    return helper(t)\n")
    assert any("calls itself" in finding.message for finding in named(analyse(text), RULE))
