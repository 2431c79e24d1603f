"""What the page of slow-math-mode does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels

NAME = "slow-math-mode"


def test_each_variable_and_the_value_that_slows(analyse: Analyse) -> None:
    for name, slow, fast in (
        ("TF_DETERMINISTIC_OPS", "1", "0"),
        ("TF_CUDNN_DETERMINISTIC", "true", "0"),
        ("TF_CUDNN_USE_AUTOTUNE", "0", "1"),
        ("NVIDIA_TF32_OVERRIDE", "0", "1"),
    ):
        text = "import os\nos.environ['{}'] = '{}'\nimport tensorflow as tf\n"
        assert [f.severity for f in named(analyse(text.format(name, slow)), NAME)] == [Severity.WARNING]
        assert named(analyse(text.format(name, fast)), NAME) == []


def test_switch_of_the_programs_own_is_info(analyse: Analyse) -> None:
    text = (
        "import sys\nimport tensorflow as tf\n\n"
        "if '--repeatable' in sys.argv:\n    tf.config.experimental.enable_op_determinism()\n"
    )
    assert [f.severity for f in named(analyse(text), NAME)] == [Severity.INFO]


def test_debug_switch_is_fine(analyse: Analyse) -> None:
    text = (
        "import argparse\nimport tensorflow as tf\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--debug', action='store_true')\nargs = parser.parse_args()\n"
        "if args.debug:\n    tf.config.experimental.enable_op_determinism()\n"
    )
    assert named(analyse(text), NAME) == []


def test_tests_may_repeat_exactly(analyse: Analyse) -> None:
    text = "import tensorflow as tf\n\ndef test_step():\n    tf.config.experimental.enable_op_determinism()\n"
    assert named(analyse({"tests/test_step.py": text}), NAME) == []


def test_tf32_off(analyse: Analyse) -> None:
    text = "import tensorflow as tf\ntf.config.experimental.enable_tensor_float_32_execution(False)\n"
    assert [f.location.line for f in named(analyse(text), NAME)] == [2]


def test_only_a_gpu_shows_its_price(analyse: Analyse, rule: Callable[[str], Check]) -> None:
    text = (
        "import tensorflow as tf\ntf.config.experimental.enable_op_determinism()\n"
        "tf.config.experimental.enable_tensor_float_32_execution(False)\n"
    )
    determinism, tf32 = named(analyse(text), NAME)

    def judged(finding: Finding, evidence: Evidence) -> Verdict | None:
        judgement = rule(NAME).judge(finding, evidence)
        return judgement.verdict if judgement else None

    def on_gpu(products: float) -> Evidence:
        kernels = Kernels(99, 50.0, gemm_share=products)
        return evidence_of(gpu=True, buckets={"device_compute": 5.0, "host": 5.0}, kernels=kernels)

    assert judged(tf32, evidence_of()) is judged(determinism, evidence_of()) is None
    assert judged(tf32, on_gpu(0.02)) is Verdict.MINOR
    assert judged(tf32, on_gpu(0.5)) is Verdict.UNMEASURED
    # Determinism touches other kernels too.
    assert judged(determinism, on_gpu(0.02)) is Verdict.UNMEASURED
