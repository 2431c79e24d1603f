"""The trace's half of the input rules: which stage, which Python, whose cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.checks.input_costs import judge_input, part_of, python_input, rewritten, stages_of
from tflint_gpu.findings import Finding, Measure, Verdict
from tflint_gpu.trace.evidence import PipelineStage, PythonInput, Spot, WhatIf


@pytest.fixture
def finding(rule: Callable[[str], Check]) -> Finding:
    """Return a finding on line 12 of train.py."""
    return finding_at(rule("map-not-parallel"), 12, names=("load",))


def stage(chain: str, line: int | None = None, self_ms: float = 1.0, pipeline: int = 0) -> PipelineStage:
    spot = Spot("train.py", line) if line else None
    return PipelineStage(f"Iterator::Root::{chain}", chain.split("::")[-1], self_ms, 20, spot, pipeline)


def test_a_stage_is_known_by_its_line(finding: Finding) -> None:
    here, there = stage("Prefetch::Map", 12), stage("Prefetch::Map::Map", 30)

    assert stages_of(finding, evidence_of(pipelines=(here, there)), ("Map",)) == [here]


def test_the_only_stage_of_a_kind_needs_no_line(finding: Finding) -> None:
    only = stage("Prefetch::Map")

    assert stages_of(finding, evidence_of(pipelines=(only, stage("Prefetch"))), ("Map",)) == [only]
    assert stages_of(finding, evidence_of(pipelines=(only, stage("Prefetch::Map::Map"))), ("Map",)) == []


def test_part_counts_the_own_pipeline_alone() -> None:
    mine, rest, other = stage("Map", self_ms=3.0), stage("Range"), stage("Map", self_ms=50.0, pipeline=1)

    assert part_of([mine], evidence_of(pipelines=(mine, rest, other))) == pytest.approx(0.75)


def test_chain_reads_from_the_step_inwards(finding: Finding) -> None:
    stages = (stage("Prefetch"), stage("Prefetch::FlatMap[0]::TFRecord", 12), stage("Map", pipeline=1))

    assert rewritten(evidence_of(pipelines=stages), finding) == ("Prefetch", "FlatMap", "TFRecord")


def test_two_chains_without_lines_cannot_be_told_apart(finding: Finding) -> None:
    assert rewritten(evidence_of(pipelines=(stage("Prefetch"), stage("Map", pipeline=1))), finding) == ()


@pytest.mark.parametrize(
    ("source", "known"),
    [
        (PythonInput("py_function", "other", 1.0, 20, Spot("train.py", 12)), True),
        (PythonInput("py_function", "load", 1.0, 20, Spot("other.py", 3)), True),
        (PythonInput("py_function", "", 1.0, 20), True),
        (PythonInput("py_function", "other", 1.0, 20, Spot("other.py", 3)), False),
        (PythonInput("generator", "load", 1.0, 20, Spot("train.py", 12)), False),
    ],
)
def test_python_is_known_by_line_or_name(finding: Finding, source: PythonInput, known: bool) -> None:
    found = python_input(finding, evidence_of(python_input=(source,)), "py_function", "numpy_function")

    assert found == ([source] if known else [])


def test_noise_of_the_cached_batch_leaves_the_wait_to_decide() -> None:
    noisy = WhatIf("cached-batch", 9.0, 10.0, 1.1, 3, 0.6, 0.6, 2.0)

    judged = judge_input(evidence_of(buckets={"input_wait": 4.0}, what_if=(noisy,)), 0.5)

    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.2)
    assert judged.impact.basis == "trace: wait for input"


def test_the_noise_of_the_cached_batch_bounds_what_input_costs() -> None:
    noisy = WhatIf("cached-batch", 9.5, 10.0, 1.05, 3, 0.1, 0.95, 1.25)

    judged = judge_input(evidence_of(buckets={"input_wait": 8.0}, what_if=(noisy,)), 0.5)

    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.1)


def test_no_cause_takes_more_than_its_own_time() -> None:
    judged = judge_input(evidence_of(buckets={"input_wait": 9.0}), 1.0, Measure("python_time", 2.0, "ms"))

    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.2)


def test_no_steps_no_judgement() -> None:
    assert judge_input(evidence_of(steps=0), 1.0) is None


def test_input_that_the_trace_began_anew_for_each_step_stays_unmeasured() -> None:
    evidence = evidence_of(10.0, buckets={"input_wait": 8.0}, facts={"input_restarted": True})
    judged = judge_input(evidence, 1.0)
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert judged.reason


def test_a_gain_beyond_what_input_takes_is_not_its_own() -> None:
    """One cached batch has one shape: what is gained may be traces and compilations that it spares."""
    cached = WhatIf("cached-batch", 100.0, 1000.0, 10.0, 3, 0.1, 9.0, 11.0)
    short = PythonInput("generator", "rows", 4.0, 20)
    evidence = evidence_of(1000.0, buckets={"input_wait": 10.0}, what_if=(cached,), python_input=(short,))
    judged = judge_input(evidence, 1.0)
    assert judged is not None
    assert judged.measures[0].value == 0.01
    busy = evidence_of(1000.0, what_if=(cached,), python_input=(replace(short, ms_per_step=950.0),))
    judged = judge_input(busy, 1.0)
    assert judged is not None
    assert judged.measures[0].value == 0.9


def test_compilations_that_one_shape_spares_are_no_gain_of_the_input() -> None:
    cached = WhatIf("cached-batch", 350.0, 1000.0, 2.857, 3, 0.02, 2.8, 2.9)
    busy = PythonInput("generator", "rows", 900.0, 20)
    evidence = evidence_of(1000.0, buckets={"compile": 640.0}, what_if=(cached,), python_input=(busy,), gpu=True)

    judged = judge_input(evidence, 1.0)
    assert judged is not None
    assert judged.verdict is Verdict.MINOR
    judged = judge_input(evidence_of(1000.0, what_if=(cached,), python_input=(busy,), gpu=True), 1.0)
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
