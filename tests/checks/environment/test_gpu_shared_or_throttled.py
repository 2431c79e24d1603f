from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Samples

Rule = Callable[[str], Check]
RULE = "gpu-shared-or-throttled"


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (Samples(30, other_processes=1), "1 other process used the GPU"),
        (Samples(30, other_processes=3), "3 other processes used the GPU"),
        (Samples(30, throttled=("heat (hardware)",), sm_clock_mhz=900.0), "lowered by heat (hardware)"),
        (Samples(30, other_processes=1, throttled=("power cap", "power brake")), "lowered by power brake"),
    ],
)
def test_what_spoils_the_figures(rule: Rule, samples: Samples, words: str) -> None:
    (finding,) = rule(RULE).observe(evidence_of(gpu=True, samples=samples))

    assert words in finding.message
    assert len(finding.message) < 200
    assert (finding.severity, finding.verdict) == (Severity.INFO, Verdict.OBSERVED)


@pytest.mark.parametrize(
    "samples",
    [
        None,
        Samples(30, other_processes=0),
        Samples(30, other_processes=None),
        Samples(30, throttled=("power cap",), power_w=700.0, power_limit_w=700.0),
        Samples(0, note="No GPU counters: no NVIDIA driver is installed on this machine."),
    ],
    ids=["not sampled", "alone: its own children do not count", "unknown", "full load", "no driver"],
)
def test_silent(rule: Rule, samples: Samples | None) -> None:
    assert list(rule(RULE).observe(evidence_of(gpu=True, samples=samples))) == []
