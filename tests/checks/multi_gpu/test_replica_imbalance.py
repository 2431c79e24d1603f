"""Collectives and uneven replicas: which of the two rules has the word."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Verdict
from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.importer import import_profile
from tflint_gpu.trace.usage import GpuUse, HostUse

Rule = Callable[[str], Check]
BOTH = ("allreduce-bound", "replica-imbalance")


def _evidence(*compute: float, collective: float = 3.0, exposed: float = 2.0, steps: int = 5) -> Evidence:
    """Steps of 10 ms on as many GPUs as there are `compute` times."""
    gpus = tuple(GpuUse(f"GPU:{number}", True, 0.9, ms, collective, steps) for number, ms in enumerate(compute))
    buckets = {"device_compute": 10.0 - exposed, "collectives": exposed}
    return evidence_of(gpu=True, buckets=buckets, gpus=gpus, steps=steps * len(gpus))


def _told(rule: Rule, evidence: Evidence) -> dict[str, Finding]:
    return {name: finding for name in BOTH for finding in rule(name).observe(evidence)}


def test_even_replicas_that_wait_are_bound_by_the_exchange(rule: Rule) -> None:
    told = _told(rule, _evidence(7.0, 7.1, 6.9, 7.0))
    assert list(told) == ["allreduce-bound"]
    assert "20% of the step 4 GPUs only exchange gradients" in told["allreduce-bound"].message
    assert told["allreduce-bound"].verdict is Verdict.OBSERVED


def test_a_slower_replica_is_named_instead(rule: Rule) -> None:
    told = _told(rule, _evidence(7.0, 5.0, 5.0, 5.0))
    assert list(told) == ["replica-imbalance"]
    finding = told["replica-imbalance"]
    assert finding.message.startswith("GPU:0 computes longer than the others")
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.2)
    assert len(finding.message) < 200


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(7.0, 7.0, exposed=0.5),
        _evidence(7.0, 5.0, steps=1),
        _evidence(9.0, 3.0, collective=0.0, exposed=0.0),
        _evidence(7.0),
        evidence_of(buckets={"collectives": 5.0}),
    ],
    ids=["hidden exchange", "a single step", "no collectives: not one training", "one GPU", "no GPU"],
)
def test_silent(rule: Rule, evidence: Evidence) -> None:
    assert _told(rule, evidence) == {}


@needs_profiles
def test_one_step_of_bert_on_eight_gpus_is_too_thin(rule: Rule) -> None:
    assert _told(rule, import_profile(SHARED / "v100x8-bert").evidence) == {}


def _hosts(*hosts: HostUse, gpu: bool = True) -> Evidence:
    return evidence_of(gpu=gpu, buckets={"device_compute": 6.0, "collectives": 4.0}, hosts=hosts)


def test_a_slower_worker_is_named_with_its_reason(rule: Rule) -> None:
    early = HostUse("a:1", 5, 10.0, 0.0, 1.0, 6.0)
    late = HostUse("b:1", 5, 10.0, 0.0, 7.0, 0.0)
    for gpu in (True, False):
        told = _told(rule, _hosts(early, late, gpu=gpu))
        assert list(told) == ["replica-imbalance"]
        finding = told["replica-imbalance"]
        assert finding.message.startswith("b:1 takes longer")
        assert "it waits for its input" in finding.message
        assert len(finding.message) < 200
        assert finding.impact is not None
        assert finding.impact.step_share == pytest.approx(0.6)
    computing = dataclasses.replace(late, input_ms=1.0)
    assert "a slower machine" in _told(rule, _hosts(early, computing))["replica-imbalance"].message


@pytest.mark.parametrize(
    "hosts",
    [
        (HostUse("a:1", 5, 10.0, 0.0, 1.0, 2.0), HostUse("b:1", 5, 10.0, 0.0, 1.5, 1.5)),
        (HostUse("a:1", 5, 10.0, 0.0, 1.0, 0.0), HostUse("b:1", 5, 30.0, 0.0, 1.0, 0.0)),
        (HostUse("a:1", 1, 10.0, 0.0, 1.0, 6.0), HostUse("b:1", 1, 10.0, 0.0, 7.0, 0.0)),
        (HostUse("a:1", 0), HostUse("b:1", 5, 10.0, 0.0, 7.0, 1.0)),
    ],
    ids=["in step", "no exchange: not one training", "a single step", "one shows no steps"],
)
def test_workers_that_nobody_waits_for(rule: Rule, hosts: tuple[HostUse, ...]) -> None:
    assert "replica-imbalance" not in _told(rule, _hosts(*hosts))
