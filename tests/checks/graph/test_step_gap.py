from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import CallbackCost, Copies, Eager, Evidence, TracedFunction

RULE = "step-gap"
GAP = {"device_compute": 6.0, "host": 3.0, "unknown": 1.0}


def _gap(**parts: object) -> Evidence:
    return evidence_of(gpu=True, buckets=GAP, **parts)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (_gap(callbacks=(CallbackCost("Watch", 3.0),)), "callback Watch takes 30%"),
        (_gap(functions=(TracedFunction("step", 9, 8, 20),)), "step was traced again 8 times"),
        (_gap(eager=Eager(54.0, 0.5)), "54 ops one by one"),
        (_gap(copies=Copies(device_to_host_count=2.0)), "copied to the host in every step"),
        (_gap(), "what Python does between two steps"),
    ],
    ids=["callback", "retrace", "eager", "copy", "unknown"],
)
def test_names_the_largest_cause_seen(rule: Callable[[str], Check], evidence: Evidence, words: str) -> None:
    (finding,) = rule(RULE).observe(evidence)

    assert finding.verdict is Verdict.OBSERVED
    assert words in finding.message
    assert len(finding.message) < 200
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.4)


@pytest.mark.parametrize(
    "evidence",
    [
        evidence_of(gpu=True, buckets={"device_compute": 9.5, "host": 0.5}),
        evidence_of(gpu=True, buckets={"device_compute": 4.0, "input_wait": 6.0}),
        evidence_of(buckets={"host": 10.0}),
    ],
    ids=["small gap", "input explains it", "no GPU"],
)
def test_silent(rule: Callable[[str], Check], evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []
