"""What the page of tensor-cores-idle does not show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Device, Evidence, Kernels

NAME = "tensor-cores-idle"
TEXT = """\
import numpy as np
import tensorflow as tf

{policy}
model = tf.keras.Sequential([
    tf.keras.Input((512,)),
    tf.keras.layers.Dense({width}),
    tf.keras.layers.Dense(101, dtype="float32"),
])
model.compile("adam", "mse")
model.fit(np.zeros((4096, 512)), np.zeros((4096, 101)), batch_size=256)
"""
MIXED = 'tf.keras.mixed_precision.set_global_policy("mixed_float16")'


def severities(analyse: Analyse, width: str, policy: str = MIXED) -> list[Severity]:
    return [finding.severity for finding in named(analyse(TEXT.format(width=width, policy=policy)), NAME)]


def test_widths(analyse: Analyse) -> None:
    assert severities(analyse, "1001") == [Severity.INFO]
    assert severities(analyse, "1004") == [Severity.HINT]
    assert severities(analyse, "1024") == []
    assert severities(analyse, "17") == []


def test_width_of_run_time_is_left_alone(analyse: Analyse) -> None:
    assert severities(analyse, "int(np.load('n.npy'))") == []


def test_32_bit_models_are_fine(analyse: Analyse) -> None:
    assert severities(analyse, "1001", "") == []


def _evidence(gemm: float, cores: float | None, capability: str = "9.0") -> Evidence:
    evidence = evidence_of(
        10.0,
        gpu=True,
        buckets={"device_compute": 9.0},
        kernels=Kernels(100, 90.0, tensor_core_share=cores, gemm_share=gemm),
    )
    device = Device("H200", "gpu", traced=True, compute_capability=capability)
    return replace(evidence, environment=replace(evidence.environment, device=device))


@pytest.mark.parametrize(
    ("gemm", "cores", "verdict"), [(0.6, 0.6, Verdict.REFUTED), (0.6, 0.59, Verdict.MINOR), (0.6, 0.1, None)]
)
def test_judge(rule: Callable[[str], Check], gemm: float, cores: float, verdict: Verdict | None) -> None:
    check = rule(NAME)
    judged = check.judge(finding_at(check, 7), _evidence(gemm, cores))
    assert (judged.verdict if judged else None) is verdict


@pytest.mark.parametrize(
    ("evidence", "count"),
    [
        (_evidence(0.6, 0.0), 1),
        (_evidence(0.6, 0.3), 0),
        (_evidence(0.1, 0.0), 0),
        (_evidence(0.6, None), 0),
        (_evidence(0.6, 0.0, "6.1"), 0),
        (evidence_of(10.0), 0),
    ],
)
def test_observe_products_without_tensor_cores(
    rule: Callable[[str], Check], evidence: Evidence, count: int
) -> None:
    found = list(rule(NAME).observe(evidence))
    assert len(found) == count
    assert all(finding.verdict is Verdict.OBSERVED for finding in found)
