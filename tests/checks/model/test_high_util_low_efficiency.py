from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels, Samples

Rule = Callable[[str], Check]
RULE = "high-util-low-efficiency"
LARGE = Kernels(100, 400.0, gemm_share=0.8)


def _evidence(busy: float, samples: Samples | None = None, kernels: Kernels | None = LARGE) -> Evidence:
    buckets = {"device_compute": 10.0 * busy, "host": 10.0 * (1 - busy)}
    return evidence_of(gpu=True, buckets=buckets, samples=samples, kernels=kernels)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (_evidence(0.4, Samples(30, gpu_util=0.99)), "kernels run 40% of the step"),
        (_evidence(0.95, Samples(30, gpu_util=0.99, power_w=200, power_limit_w=700)), "29% of its power limit"),
        (_evidence(0.95, None, Kernels(100, 90.0, gemm_share=0.1, occupancy=0.12)), "fill 12% of the GPU"),
        (_evidence(0.95, None, Kernels(2000, 4.0, gemm_share=0.1)), "2000 kernels a step of 4"),
    ],
    ids=["gaps", "power", "occupancy", "tiny kernels"],
)
def test_signs_of_little_work(rule: Rule, evidence: Evidence, words: str) -> None:
    (finding,) = rule(RULE).observe(evidence)

    assert words in finding.message
    assert len(finding.message) < 200
    assert (finding.severity, finding.verdict) == (Severity.INFO, Verdict.OBSERVED)


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(0.95, Samples(30, gpu_util=0.99, power_w=600, power_limit_w=700)),
        _evidence(0.95, Samples(30, gpu_util=0.99, power_w=400, power_limit_w=700), Kernels(200, 90.0)),
        _evidence(0.95, None, Kernels(100, 400.0, gemm_share=0.8, occupancy=0.12)),
        _evidence(0.5, Samples(30, gpu_util=0.6, power_w=100, power_limit_w=700)),
        _evidence(0.95, Samples(30, gpu_util=0.99, power_w=200)),
        evidence_of(samples=Samples(30, gpu_util=0.99, power_w=100, power_limit_w=700)),
    ],
    ids=[
        "matrix products at full power",
        "bound by memory",
        "occupancy of matrix products",
        "idle and said to be",
        "no power limit known",
        "no GPU traced",
    ],
)
def test_silent(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []


def test_silent_where_no_steps_were_marked(rule: Rule) -> None:
    evidence = _evidence(0.95, None, Kernels(2000, 4.0))
    assert evidence.window is not None
    unmarked = replace(evidence, window=replace(evidence.window, seen_as="time"))
    assert list(rule(RULE).observe(unmarked)) == []
