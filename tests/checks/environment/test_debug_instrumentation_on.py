from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, FIT, SETUP, STEP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Eager, Placement, Spot

RULE = "debug-instrumentation-on"
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def stepped(line: str, step: str = COMPILED_STEP) -> str:
    return SETUP + step.replace("    return loss", f"    {line}\n    return loss") + LOOP


@pytest.mark.parametrize(
    "switch",
    [
        "tf.debugging.set_log_device_placement(True)",
        "tf.debugging.enable_check_numerics()",
        "tf.debugging.experimental.enable_dump_debug_info('dump')",
        "tf.profiler.experimental.start('logs')",
        "import os; os.environ['CUDA_LAUNCH_BLOCKING'] = '1'",
        "import os; os.environ['TF_CPP_VMODULE'] = 'executor=2'",
        "import os; os.environ['XLA_FLAGS'] = '--xla_dump_to=dump'",
    ],
)
def test_switches(analyse: Analyse, switch: str) -> None:
    text = SETUP + f"{switch}  # left on\n" + FIT
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.WARNING
    assert finding.location.line == line_of(text, "left on")


@pytest.mark.parametrize(
    "harmless",
    [
        "tf.debugging.set_log_device_placement(False)",
        "import os; os.environ['CUDA_LAUNCH_BLOCKING'] = '0'",
        "import os; os.environ['TF_CPP_VMODULE'] = 'executor=0,non_max_suppression_op=0'",
        "import os; os.environ['TF_CPP_VMODULE'] = '4'",
        "import os; os.environ['XLA_FLAGS'] = '--xla_gpu_cuda_data_dir=/usr/local/cuda'",
        "tf.profiler.experimental.start('logs')\nmodel(tf.zeros([1, 8]))\ntf.profiler.experimental.stop()",
        "tf.print('devices', tf.config.list_physical_devices('GPU'))",
    ],
)
def test_silent_for_what_is_off_or_ends(analyse: Analyse, harmless: str) -> None:
    assert named(analyse(SETUP + harmless + "\n" + FIT), RULE) == []


def test_print_in_the_step_is_one_finding_of_one_rule(analyse: Analyse) -> None:
    compiled = analyse(stepped("tf.print(loss)"))
    eager = analyse(stepped("tf.print(loss)", STEP))

    assert [finding.severity for finding in named(compiled, RULE)] == [Severity.WARNING]
    assert named(compiled, "host-sync-in-step") == []
    assert named(eager, RULE) == []
    assert len(named(eager, "host-sync-in-step")) == 1


@pytest.mark.parametrize(
    ("assertion", "severities"),
    [
        ("tf.debugging.assert_less(loss, 1e9)", [Severity.INFO]),
        ("tf.debugging.check_numerics(loss, 'loss')", [Severity.INFO]),
        ("tf.debugging.assert_rank(loss, 0)", []),
        ("tf.debugging.assert_shapes([(loss, ())])", []),
    ],
)
def test_assertions_about_values_only(analyse: Analyse, assertion: str, severities: list[Severity]) -> None:
    assert [finding.severity for finding in named(analyse(stepped(assertion)), RULE)] == severities


def test_silent_in_the_dataset(analyse: Analyse) -> None:
    text = SETUP + (
        "def check(x, y):\n    tf.debugging.assert_less(x, 9.0)\n    tf.print(x)\n    return x, y\n"
        "ds = ds.map(check, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)\n"
    )
    assert named(analyse(text + 'model.compile("adam", "mse")\nmodel.fit(ds, epochs=9)\n'), RULE) == []


@pytest.mark.parametrize(("ms", "verdict"), [(1.0, Verdict.CONFIRMED), (0.01, Verdict.MINOR)])
def test_judged_by_the_time_of_its_ops(rule: Callable[[str], Check], ms: float, verdict: Verdict) -> None:
    check = rule(RULE)
    placed = Placement("PrintV2", 1, "cpu", predicted=False, spot=Spot("train.py", 7), ms=ms)
    judged = check.judge(finding_at(check, 7), evidence_of(placements=(placed,)))

    assert judged is not None
    assert judged.verdict is verdict
    assert check.judge(finding_at(check, 8), evidence_of(placements=(placed,))) is None


def test_of_the_placement_log_the_lines_are_counted(analyse: Analyse, rule: Callable[[str], Check]) -> None:
    text = SETUP + "tf.debugging.set_log_device_placement(True)\n" + FIT
    (found,) = named(analyse(text), RULE)
    judged = rule(RULE).judge(found, evidence_of(eager=Eager(42.0, 0.3)))
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert [(each.metric, each.value) for each in judged.measures] == [("log_lines_per_step", 42.0)]
    assert rule(RULE).judge(found, evidence_of()) is None
