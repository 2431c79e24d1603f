from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Verdict
from tflint_gpu.trace.evidence import Copies, Evidence, Step

Rule = Callable[[str], Check]


def _evidence(copying: float, waiting: float = 0.0, **parts: object) -> Evidence:
    buckets = {"host_to_device": copying, "input_wait": waiting, "device_compute": 10.0 - copying - waiting}
    return evidence_of(gpu=True, buckets=buckets, **parts)


def _observed(rule: Rule, evidence: Evidence, name: str = "h2d-transfer-bound") -> list[Finding]:
    return list(rule(name).observe(evidence))


def test_exposed_copies_of_a_tenth_of_the_step(rule: Rule) -> None:
    (finding,) = _observed(rule, _evidence(3.9, copies=Copies(150 * 2**20, 0, 2, 0)))

    assert finding.verdict is Verdict.OBSERVED
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.39)
    assert "39%" in finding.message
    assert "150 MiB in 2 copies" in finding.message
    assert "uint8" in finding.message


def test_dozens_of_copies_are_to_be_packed(rule: Rule) -> None:
    (finding,) = _observed(rule, _evidence(2.0, copies=Copies(2**20, 0, 60, 0)))
    assert "pack features" in finding.message


@pytest.mark.parametrize(
    ("copying", "waiting", "speaks"),
    [
        (2.0, 0.1, ["h2d-transfer-bound"]),
        (0.7, 0.5, ["h2d-transfer-bound"]),
        (0.5, 0.7, ["input-bound-step"]),
        (0.5, 0.2, []),
    ],
)
def test_the_larger_part_of_the_input_has_the_word(
    rule: Rule, copying: float, waiting: float, speaks: list[str]
) -> None:
    evidence = _evidence(copying, waiting)
    names = ("h2d-transfer-bound", "input-bound-step")
    assert [name for name in names if _observed(rule, evidence, name)] == speaks


def test_one_large_copy_before_training_is_no_transfer_bound(rule: Rule) -> None:
    evidence = _evidence(0.0)
    first = Step(500.0, 490.0, 5.0, {"host_to_device": 490.0})
    assert _observed(rule, replace(evidence, steps=(first, *evidence.steps))) == []


def test_hidden_copies_are_free(rule: Rule) -> None:
    assert _observed(rule, _evidence(0.0, copies=Copies(2**30, 0, 100, 0))) == []


def test_without_a_gpu_nothing_is_copied(rule: Rule) -> None:
    assert _observed(rule, evidence_of(buckets={"host_to_device": 5.0, "host": 5.0})) == []
