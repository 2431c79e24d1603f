from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.trace.evidence import Evidence, Kernels, PipelineStage, Samples

Rule = Callable[[str], Check]
RULE = "host-thread-contention"


def _evidence(launch: float = 3.0, cpu: float | None = 0.95, input_ms: float = 60.0, cpus: int = 16) -> Evidence:
    stage = PipelineStage("Iterator::Root::ParallelMapV2", "ParallelMapV2", input_ms, 20)
    evidence = evidence_of(
        gpu=True,
        buckets={"device_compute": 10.0 - launch, "launch": launch},
        pipelines=(stage,) if input_ms else (),
        samples=Samples(30, cpu_util=cpu),
        kernels=Kernels(1500, 8.0),
    )
    return replace(evidence, environment=replace(evidence.environment, cpus=cpus))


def test_launches_are_late_while_tf_data_fills_the_cores(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(_evidence())

    assert "30% of the step" in finding.message
    assert "TF_GPU_THREAD_MODE=gpu_private" in finding.message
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.3)


def test_launch_bound_step_leaves_it_the_word(rule: Rule) -> None:
    assert list(rule("launch-bound-step").observe(_evidence())) == []


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(launch=1.0),
        _evidence(cpu=0.5),
        _evidence(cpu=None),
        _evidence(input_ms=0.0),
        _evidence(input_ms=2.0),
        _evidence(cpus=2),
    ],
    ids=["launches in time", "idle cores", "cores not sampled", "no tf.data", "tf.data idles", "few cores"],
)
def test_silent_and_launch_bound_step_speaks(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []
    assert list(rule("launch-bound-step").observe(evidence)) != []


def test_silent_on_a_cpu(rule: Rule) -> None:
    evidence = replace(_evidence(), environment=evidence_of().environment)
    assert list(rule(RULE).observe(evidence)) == []
