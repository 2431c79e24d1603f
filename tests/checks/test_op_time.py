"""Loops in the step as a trace judges them: by launches on a GPU, by their own time on a CPU."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.checks.op_time import judge_loop
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import GraphLoop, Kernels, Placement, Spot

LOOP = GraphLoop(Spot("train.py", 6), body_ops=4, rounds=128.0, ms=3.0)
#: The few ops of the loop that are long enough to be seen.
OPS = (Placement("Cast", 1, "gpu", predicted=True, spot=Spot("train.py", 6), ms=0.05),)


def test_a_loop_on_a_cpu_costs_its_whole_time_not_that_of_the_ops_seen(rule: Callable[[str], Check]) -> None:
    found = finding_at(rule("map-fn-in-step"), 6)
    judged = judge_loop(found, evidence_of(10.0, loops=(LOOP,), placements=OPS))
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == 0.3
    assert [each.metric for each in judged.measures] == ["loop_share", "rounds_per_step", "ops_per_round"]


def test_an_unrolled_loop_costs_its_ops_and_a_short_one_on_a_cpu_proves_nothing(
    rule: Callable[[str], Check],
) -> None:
    judged = judge_loop(finding_at(rule("map-fn-in-step"), 6), evidence_of(10.0, placements=OPS))
    assert judged is not None
    assert (judged.verdict, judged.measures[0].value) == (Verdict.UNMEASURED, 0.005)


def test_a_loop_outside_the_step_or_without_a_time_says_nothing(rule: Callable[[str], Check]) -> None:
    found = finding_at(rule("map-fn-in-step"), 6)
    apart = GraphLoop(Spot("train.py", 6), body_ops=4, rounds=128.0, ms=3.0, in_step=False)
    assert judge_loop(found, evidence_of(10.0, loops=(apart,))) is None
    assert judge_loop(found, evidence_of(10.0, loops=(GraphLoop(Spot("train.py", 6), body_ops=4),))) is None


def test_a_loop_on_a_gpu_costs_its_launches(rule: Callable[[str], Check]) -> None:
    buckets = {"device_compute": 4.0, "launch": 6.0}
    kernels = Kernels(per_step=3000, median_us=2.0)
    evidence = evidence_of(10.0, gpu=True, buckets=buckets, kernels=kernels, loops=(LOOP,))
    judged = judge_loop(finding_at(rule("map-fn-in-step"), 6), evidence)
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == 0.6
