from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Copies

RULE = "host-sync-in-step"


def loop(body: str) -> str:
    """A training loop whose body ends in `body`, `loss` being the step's result."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        SETUP
        + COMPILED_STEP
        + "for epoch in range(9):\n    best = 1.0\n    losses = []\n    for step, (x, y) in enumerate(ds):\n"
        + "        loss = train_step(x, y)\n"
        + lines
    )


@pytest.mark.parametrize(
    "read",
    [
        "losses.append(loss.numpy())",
        "total = float(loss)",
        "np.asarray(loss)",
        "print(loss)",
        "print(f'{loss:.3f}')",
        "print('loss %s' % loss)",
        "print('loss', loss.numpy(), float(loss))",
        "tf.print(loss)",
        "tf.summary.scalar('loss', loss, step=step)",
        "if loss < best:\n    best = loss\n    seen = len(losses)",
        "losses += [float(v) for v in [loss]]",
        "seen = optimizer.iterations.numpy()",
        "if optimizer.iterations % 100 == 0:\n    print('another hundred')",
    ],
)
def test_reads_in_every_step(analyse: Analyse, read: str) -> None:
    text = loop(read)
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.WARNING
    assert finding.location.line == line_of(text, "loss = train_step") + 1


def test_branching_again_on_the_same_tensor_waits_no_more(analyse: Analyse) -> None:
    text = loop("if optimizer.iterations % 100 == 0:\n    pass\nif optimizer.iterations % 500 == 0:\n    pass")

    assert [finding.location.line for finding in named(analyse(text), RULE)] == [line_of(text, "% 100")]


@pytest.mark.parametrize(
    "body",
    [
        "if step % 100 == 0:\n    print(float(loss))",
        "if unheard_of(step):\n    print(float(loss))",
        "if args.benchmark:\n    float(loss)",
        "losses.append(loss)",
        "counter = optimizer.iterations",
        "print('step', step)",
        "labels = y.numpy()",
        "model.reset_metrics()",
    ],
    ids=[
        "every 100 steps",
        "behind a branch",
        "in a benchmark",
        "kept as a tensor",
        "a counter, not read",
        "no tensor",
        "host data",
        "other call",
    ],
)
def test_silent_where_nothing_is_read_in_every_step(analyse: Analyse, body: str) -> None:
    assert named(analyse(loop(body)), RULE) == []


def test_silent_at_the_end_of_an_epoch(analyse: Analyse) -> None:
    assert named(analyse(loop("pass") + "    print(epoch, float(loss))\n"), RULE) == []


def test_silent_inside_the_compiled_step(analyse: Analyse) -> None:
    text = loop("pass").replace("    return loss\n", "    print(loss)\n    return loss\n")
    assert named(analyse(text), RULE) == []


@pytest.mark.parametrize(
    ("line", "severities"),
    [
        ("tf.summary.scalar('loss', loss, step=0)", [Severity.INFO]),
        ("tf.summary.histogram('x', x, step=0)", [Severity.WARNING]),
        ("if x.ndim == 2:\n        tf.summary.histogram('x', x, step=0)", []),
    ],
)
def test_summaries_in_the_compiled_step(analyse: Analyse, line: str, severities: list[Severity]) -> None:
    text = loop("pass").replace("    return loss\n", f"    {line}\n    return loss\n")
    assert [finding.severity for finding in named(analyse(text), RULE)] == severities
    rare = text.replace("for epoch", "tf.summary.record_if(False)\nfor epoch")
    assert named(analyse(rare), RULE) == []


def test_silent_in_an_evaluation_loop(analyse: Analyse) -> None:
    text = loop("pass") + "    scores = [model(x).numpy() for x, y in ds]\n"
    assert named(analyse(text), RULE) == []


def test_quiet_where_an_environment_needs_the_action(analyse: Analyse) -> None:
    text = loop("env.step(int(tf.argmax(model(x)[0])))").replace(
        "for epoch", "import gymnasium\nenv = gymnasium.make('CartPole-v1')\nfor epoch"
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


BUSY = {"device_compute": 6.0, "host": 3.0, "input_wait": 1.0}


@pytest.mark.parametrize(("copies", "verdict"), [(2.0, Verdict.CONFIRMED), (0.0, Verdict.REFUTED)])
def test_judged_by_copies_to_the_host(rule: Callable[[str], Check], copies: float, verdict: Verdict) -> None:
    check = rule(RULE)
    evidence = evidence_of(gpu=True, buckets=BUSY, copies=Copies(device_to_host_count=copies))
    judged = check.judge(finding_at(check, 3), evidence)

    assert judged is not None
    assert judged.verdict is verdict
    if judged.impact:
        assert judged.impact.step_share == pytest.approx(0.3)


def test_a_cpu_trace_says_nothing(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    assert check.judge(finding_at(check, 3), evidence_of(copies=Copies(device_to_host_count=3))) is None
