from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels, Spot, WhatIf

RULE = "launch-bound-step"


def _evidence(launch: float, **parts: object) -> Evidence:
    buckets = {"device_compute": 10.0 - launch, "launch": launch}
    return evidence_of(gpu=True, buckets=buckets, **{"kernels": Kernels(1500, 8.0), **parts})


@pytest.mark.parametrize(("launch", "severity"), [(3.0, Severity.WARNING), (0.8, Severity.INFO)])
def test_loud_from_15_percent_on(rule: Callable[[str], Check], launch: float, severity: Severity) -> None:
    (finding,) = rule(RULE).observe(_evidence(launch))

    assert finding.severity is severity
    assert finding.verdict is Verdict.OBSERVED
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(launch / 10.0)


def test_tiny_kernels_and_an_idle_gpu_say_it_without_a_launch_bucket(rule: Callable[[str], Check]) -> None:
    evidence = evidence_of(gpu=True, buckets={"device_compute": 4.0, "unknown": 6.0}, kernels=Kernels(1500, 8.0))
    (finding,) = rule(RULE).observe(evidence)
    assert finding.severity is Severity.WARNING


def test_names_the_change_that_helped_most(rule: Callable[[str], Check]) -> None:
    runs = (
        WhatIf("xla", 5.0, 10.0, 2.0, 3, 0.1, 1.9, 2.1),
        WhatIf("batch-x2", 8.0, 10.0, 1.25, 3, 0.1, 1.2, 1.3),
    )
    (finding,) = rule(RULE).observe(_evidence(3.0, what_if=runs))

    assert "XLA saves 50%" in finding.message
    assert finding.impact is not None
    assert finding.impact.basis == "what-if: xla"


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(0.2),
        _evidence(3.0, kernels=Kernels(12, 200.0)),
        evidence_of(buckets={"host": 5.0, "launch": 5.0}),
        evidence_of(
            gpu=True,
            buckets={"device_compute": 4.0, "input_wait": 6.0},
            kernels=Kernels(1500, 8.0),
        ),
    ],
    ids=["small share", "few large kernels", "no GPU", "input explains it"],
)
def test_silent(rule: Callable[[str], Check], evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []


def test_silent_where_the_profiler_made_the_launches_slow(rule: Callable[[str], Check]) -> None:
    # Profiled steps of 10 ms that take 7 ms otherwise: the 3 ms of launching are the profiler's own.
    evidence = _evidence(3.0, kernels=Kernels(400, 30.0))
    assert evidence.window is not None
    plain = replace(evidence, window=replace(evidence.window, step_ms=7.0))
    assert list(rule(RULE).observe(plain)) == []


def test_stands_where_the_steps_are_driven(rule: Callable[[str], Check]) -> None:
    evidence = _evidence(3.0)
    assert evidence.window is not None
    spotted = replace(evidence, window=replace(evidence.window, spot=Spot("train.ipynb", 3, cell=5)))
    (finding,) = rule(RULE).observe(spotted)

    assert (finding.location.path, finding.location.cell, finding.location.line) == ("train.ipynb", 5, 3)
