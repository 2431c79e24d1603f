from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels, WhatIf
from tflint_gpu.trace.importer import import_profile

Rule = Callable[[str], Check]
RULE = "unfused-elementwise"


def _evidence(elementwise: float, fused: float, *runs: WhatIf) -> Evidence:
    kernels = Kernels(600, 12.0, elementwise_share=elementwise, fused_share=fused)
    return evidence_of(gpu=True, buckets={"device_compute": 8.0, "host": 2.0}, kernels=kernels, what_if=runs)


def test_element_wise_kernels_without_xla(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(_evidence(0.73, 0.0))

    assert finding.verdict is Verdict.OBSERVED
    assert finding.severity is Severity.INFO
    assert "73% of the GPU's time" in finding.message
    assert finding.impact is None


def test_a_run_under_xla_tells_the_gain(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(_evidence(0.5, 0.0, WhatIf("xla", 5.0, 10.0, 2.0, 3, 0.1, 1.9, 2.1)))
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.5)
    assert finding.impact.basis == "what-if: xla"


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(0.39, 0.0),
        _evidence(1.0, 0.9),
        _evidence(0.73, 0.0, WhatIf("xla", 10.0, 10.0, 1.0, 3, 0.05, 0.95, 1.05)),
        evidence_of(buckets={"device_compute": 8.0}),
    ],
    ids=["matrix products", "compiled by XLA", "XLA gained nothing", "no GPU"],
)
def test_silent(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []


@needs_profiles
def test_bert_in_eager_kernels_on_v100(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(import_profile(SHARED / "v100x8-bert").evidence)
    assert finding.evidence[0].value == pytest.approx(0.73, abs=0.01)


@needs_profiles
def test_jax_fuses_its_element_wise_kernels(rule: Rule) -> None:
    evidence = import_profile(SHARED / "jax-rocm" / "jax08_elementwise").evidence
    assert evidence.kernels is not None
    assert evidence.kernels.fused_share == pytest.approx(1.0, abs=0.05)
    assert list(rule(RULE).observe(evidence)) == []
