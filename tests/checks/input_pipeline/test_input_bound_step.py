"""TFG151: waits that hold the median step up, and waits that do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, PipelineStage, PythonInput, Spot, Step, TracedFunction, WhatIf

Rule = Callable[[str], Check]


def waiting(share: float, **parts: Any) -> Evidence:
    """Return evidence of a GPU whose steps wait for input for `share` of their time, with a known loop."""
    buckets = {"input_wait": 10.0 * share, "device_compute": 10.0 * (1 - share)}
    evidence = evidence_of(gpu=True, buckets=buckets, **parts)
    assert evidence.window is not None
    return replace(evidence, window=replace(evidence.window, spot=Spot("train.py", 31)))


def observed(rule: Rule, evidence: Evidence) -> list[Finding]:
    return list(rule("input-bound-step").observe(evidence))


@pytest.mark.parametrize(("share", "severity"), [(0.12, Severity.WARNING), (0.61, Severity.ERROR)])
def test_share_of_the_step_sets_the_voice(rule: Rule, share: float, severity: Severity) -> None:
    (finding,) = observed(rule, waiting(share))

    assert finding.severity is severity
    assert finding.verdict is Verdict.OBSERVED
    assert (finding.location.path, finding.location.line) == ("train.py", 31)
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(share)


def test_the_figures_are_those_of_the_breakdown(rule: Rule) -> None:
    evidence = waiting(0.2)
    slow = Step(20.0, 4.0, 4.0, {"input_wait": 16.0, "device_compute": 4.0})
    evidence = replace(evidence, steps=(*evidence.steps, slow))

    (finding,) = observed(rule, evidence)
    assert f"{evidence.share('input_wait'):.0%}" in finding.message
    assert finding.evidence[0].value == pytest.approx(evidence.share("input_wait"), abs=1e-4)


def test_arrays_that_keras_batches_by_itself_are_no_warning(rule: Rule) -> None:
    own = PipelineStage("Iterator::Root::Map", "Map", 1.0, 20)
    evidence = waiting(0.15, sources={"train.py": "00"}, pipelines=(own,))

    (finding,) = observed(rule, evidence)
    assert finding.severity is Severity.INFO
    (finding,) = observed(rule, replace(evidence, pipelines=(replace(own, spot=Spot("train.py", 12)),)))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("work", "steps", "severity"),
    [(0.4, 1, Severity.INFO), (0.4, 2, Severity.INFO), (0.4, 3, Severity.WARNING), (1.4, 1, Severity.WARNING)],
)
def test_an_epoch_of_a_step_or_two_waits_for_its_iterator(
    rule: Rule, work: float, steps: int, severity: Severity
) -> None:
    stage = PipelineStage("Iterator::Root::Batch", "Batch", work, 20, Spot("train.py", 12))

    (finding,) = observed(rule, waiting(0.15, facts={"epoch_steps": steps}, pipelines=(stage,)))
    assert finding.severity is severity


def test_below_a_tenth_nothing_is_said(rule: Rule) -> None:
    assert observed(rule, waiting(0.09)) == []


def test_exposed_copies_count_as_input(rule: Rule) -> None:
    evidence = waiting(0.0)
    steps = tuple(
        Step(10.0, 7.0, 7.0, {"input_wait": 1.3, "host_to_device": 1.2, "device_compute": 7.5}) for _ in range(20)
    )

    (finding,) = observed(rule, replace(evidence, steps=steps))
    assert finding.severity is Severity.ERROR


def test_one_slow_step_between_epochs_is_another_rules_matter(rule: Rule) -> None:
    evidence = waiting(0.01)
    slow = Step(400.0, 10.0, 10.0, {"input_wait": 390.0, "device_compute": 10.0})

    assert observed(rule, replace(evidence, steps=(*evidence.steps, slow))) == []


def test_gain_of_one_cached_batch_is_the_impact(rule: Rule) -> None:
    cached = WhatIf("cached-batch", 5.0, 10.0, 2.0, 3, 0.05, 1.9, 2.1)

    (finding,) = observed(rule, waiting(0.3, what_if=(cached,)))
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.5)
    assert finding.impact.basis == "what-if: cached batch"


def test_free_input_that_gains_nothing_is_no_bound(rule: Rule) -> None:
    cached = WhatIf("cached-batch", 10.0, 10.0, 1.0, 3, 0.01, 0.99, 1.01)

    assert observed(rule, waiting(0.3, what_if=(cached,))) == []


def test_message_names_what_takes_the_time(rule: Rule) -> None:
    stage = PipelineStage("Iterator::Root::Map", "Map", 2.0, 20, Spot("data.py", 12))
    source = PythonInput("generator", "rows", 6.0, 20, Spot("data.py", 5))

    (finding,) = observed(rule, waiting(0.5, pipelines=(stage,), python_input=(source,)))
    assert "the generator rows" in finding.message
    assert finding.related[0].location.line == 5
    assert len(finding.message) < 200


def test_no_steps_no_word(rule: Rule) -> None:
    assert observed(rule, evidence_of(steps=0)) == []


def test_on_a_cpu_a_short_wait_of_a_short_step_is_none(rule: Rule) -> None:
    buckets = {"input_wait": 0.4, "device_compute": 0.4}
    assert observed(rule, evidence_of(0.8, buckets=buckets)) == []
    assert observed(rule, evidence_of(0.8, gpu=True, buckets=buckets))
    assert observed(rule, evidence_of(8.0, buckets={"input_wait": 4.0, "device_compute": 4.0}))


def test_input_that_the_trace_began_anew_for_each_step_says_nothing(rule: Rule) -> None:
    assert observed(rule, waiting(0.8, facts={"input_restarted": True})) == []


def test_a_cached_batch_within_the_noise_leaves_a_remark(rule: Rule) -> None:
    cached = WhatIf("cached-batch", 5.0, 10.0, 2.0, 3, 0.6, 0.8, 5.0)

    (finding,) = observed(rule, waiting(0.6, what_if=(cached,)))
    assert finding.severity is Severity.INFO


def test_waits_of_short_steps_among_long_ones_are_no_share_of_the_whole(rule: Rule) -> None:
    evidence = waiting(0.6)
    slow = Step(2000.0, 1990.0, 1990.0, {"device_compute": 2000.0})

    assert observed(rule, replace(evidence, steps=(*evidence.steps, slow))) == []


def busy_cpu(work: float, op: str = "Prefetch", *, gpu: bool = False) -> Evidence:
    """Return evidence of 10 ms steps, of which 4 ms wait for a pipeline that ends in `op` and works `work` ms."""
    stages = (
        PipelineStage(f"Iterator::Root::{op}", op, 0.0, 20, Spot("train.py", 8)),
        PipelineStage(f"Iterator::Root::{op}::Shuffle", "Shuffle", work, 20, Spot("train.py", 8)),
    )
    return evidence_of(gpu=gpu, buckets={"input_wait": 4.0, "host": 6.0}, pipelines=stages)


@pytest.mark.parametrize("op", ["Prefetch", "ParallelMapV2", "MapAndBatch"])
def test_waits_of_a_cpu_whose_input_has_time_to_spare_leave_a_remark(rule: Rule, op: str) -> None:
    cached = WhatIf("cached-batch", 6.0, 10.0, 1.67, 6, 0.05, 1.6, 1.7)

    for evidence in (busy_cpu(1.9, op), replace(busy_cpu(1.9, op), what_if=(cached,))):
        (finding,) = observed(rule, evidence)
        assert finding.severity is Severity.INFO


def test_input_that_cannot_be_ready_in_time_is_to_blame(rule: Rule) -> None:
    busy = PythonInput("generator", "rows", 7.0, 20, Spot("data.py", 5))

    for evidence in (
        busy_cpu(7.0),
        busy_cpu(1.9, "BatchV2"),
        busy_cpu(1.9, gpu=True),
        replace(busy_cpu(1.9), python_input=(busy,)),
    ):
        (finding,) = observed(rule, evidence)
        assert finding.severity is Severity.ERROR


RETRACED = TracedFunction("step", 20, 15, 40, spot=Spot("train.py", 3), retrace_ms=6.0)


@pytest.mark.parametrize("parts", [{"buckets": {"compile": 6.0}}, {"functions": (RETRACED,)}])
def test_a_gain_that_is_spared_compilation_does_not_blame_the_input(rule: Rule, parts: dict[str, Any]) -> None:
    """The cached batch has one shape: of its 65 %, 60 % are traces and compilations it has no need of."""
    cached = WhatIf("cached-batch", 3.5, 10.0, 2.857, 6, 0.05, 2.8, 2.9)
    buckets = {"input_wait": 3.0, **parts.pop("buckets", {})}
    compiling = evidence_of(gpu=True, buckets=buckets, what_if=(cached,), **parts)

    (finding,) = observed(rule, compiling)
    assert finding.severity is Severity.INFO
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.05, abs=0.001)
    (finding,) = observed(rule, evidence_of(gpu=True, buckets={"input_wait": 3.0}, what_if=(cached,)))
    assert finding.severity is Severity.ERROR
