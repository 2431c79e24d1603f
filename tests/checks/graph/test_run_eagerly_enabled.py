from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tests.checks.snippets import FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Eager

RULE = "run-eagerly-enabled"


def test_quiet_where_an_option_has_it_on_by_default(analyse: Analyse) -> None:
    text = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--eager', type=bool, default=True)\nargs = parser.parse_args()\n"
        + SETUP
        + FIT.replace('"mse")', '"mse", run_eagerly=args.eager)')
    )
    assert all(finding.severity <= Severity.INFO for finding in named(analyse(text), RULE))


def test_silent_in_unit_tests(analyse: Analyse) -> None:
    text = "def test_it():\n" + "".join(
        f"    {line}\n" for line in (SETUP + FIT.replace('"mse")', '"mse", run_eagerly=True)')).splitlines()
    )
    assert named(analyse({"tests/test_model.py": text}), RULE) == []


def test_warns_where_nothing_is_trained(analyse: Analyse) -> None:
    text = "import tensorflow as tf\ntf.config.run_functions_eagerly(True)\nprint(tf.zeros([2]))\n"
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("switched", "severity"),
    [("convert.py", Severity.INFO), ("train.py", Severity.ERROR), ("net.py", Severity.ERROR)],
)
def test_a_script_that_only_converts_is_no_training(analyse: Analyse, switched: str, severity: Severity) -> None:
    files = {
        "net.py": "import tensorflow as tf\n\n"
        "def net():\n    return tf.keras.Sequential([tf.keras.layers.Dense(9)])\n",
        "train.py": "import tensorflow as tf\nfrom net import net\nm = net()\nm.compile('adam', 'mse')\n"
        "m.fit(tf.zeros([64, 8]), tf.zeros([64, 9]), epochs=3)\n",
        "convert.py": "import tensorflow as tf\nfrom net import net\nnet().save('m')\n",
    }
    files[switched] += "tf.config.run_functions_eagerly(True)\n"

    assert [finding.severity for finding in named(analyse(files), RULE)] == [severity]


def test_old_name_of_the_switch(analyse: Analyse) -> None:
    text = SETUP + "tf.config.experimental_run_functions_eagerly(True)\n" + FIT
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.ERROR]


def test_judged_by_eager_ops_except_for_the_mode_of_tf_data(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    evidence = evidence_of(eager=Eager(54.0, 0.8))
    judged = check.judge(finding_at(check, 3, kind="step"), evidence)

    assert judged is not None and judged.verdict is Verdict.CONFIRMED
    assert check.judge(finding_at(check, 3, kind="data"), evidence) is None
