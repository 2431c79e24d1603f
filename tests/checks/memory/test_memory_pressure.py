from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Samples
from tflint_gpu.trace.importer import import_profile
from tflint_gpu.trace.usage import Memory

Rule = Callable[[str], Check]
GIB = 2**30


@pytest.mark.parametrize(("peak", "told"), [(15.2, True), (14.5, True), (14.0, False), (3.0, False)])
def test_the_allocators_peak_decides(rule: Rule, peak: float, told: bool) -> None:
    memory = Memory("GPU_0_bfc", 16 * GIB, int(peak * GIB))
    found = list(rule("memory-pressure").observe(evidence_of(gpu=True, memory=memory)))
    assert [finding.verdict for finding in found] == ([Verdict.OBSERVED] if told else [])


def test_what_nvml_calls_used_says_nothing(rule: Rule) -> None:
    samples = Samples(count=30, memory_used_bytes=16 * GIB, memory_total_bytes=16 * GIB)
    memory = Memory("GPU_0_bfc", 16 * GIB, 2 * GIB)
    evidence = evidence_of(gpu=True, samples=samples, memory=memory)
    assert list(rule("memory-pressure").observe(evidence)) == []


def test_a_run_without_memory_events_says_nothing(rule: Rule) -> None:
    assert list(rule("memory-pressure").observe(evidence_of())) == []


@needs_profiles
def test_real_runs_with_free_memory_are_no_pressure(rule: Rule) -> None:
    for folder in ("v100x8-bert", "jax-rocm/jax08_gemm"):
        evidence = import_profile(SHARED / folder).evidence
        assert evidence.memory is not None
        assert list(rule("memory-pressure").observe(evidence)) == []
