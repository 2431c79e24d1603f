"""What one host of several did in a step: its own work, its waits, and input that it made for others."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tflint_gpu.trace.evidence import PipelineStage, Step
from tflint_gpu.trace.profile.host import HostTrace
from tflint_gpu.trace.profile.pipelines import pipeline_stages
from tflint_gpu.trace.usage import HostUse

#: The stage in which tf.data gives each worker its share, and throws away what it made for the others.
_SHARD = "::Shard"


def host_use(name: str, host: HostTrace, steps: Sequence[Step]) -> HostUse:
    """Return how the host `name` spent its `steps`."""
    if not steps:
        return HostUse(name, 0)
    times = [step.step_ms for step in steps]
    shards, thrown_away = _sharing(pipeline_stages([host], len(steps)))
    return HostUse(
        name,
        len(steps),
        statistics.fmean(times),
        _spread(times),
        statistics.fmean(step.buckets["input_wait"] for step in steps),
        statistics.fmean(step.buckets["collectives"] for step in steps),
        shards,
        thrown_away,
    )


def _spread(times: Sequence[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 3 else (times[0], times[0], times[0])
    return (high - low) / middle if middle else 0.0


def _sharing(stages: Sequence[PipelineStage]) -> tuple[int | None, float | None]:
    """Return among how many the training input is shared out, and the ms a step that others' elements take.

    A shard that is asked once asks its input n times, and keeps one of the n. What lies below it is made n times
    too often. None where the training input has no such stage, or it was asked too rarely to tell.
    """
    training = [stage for stage in stages if stage.pipeline == 0]
    for shard in training:
        if not shard.chain.endswith(_SHARD):
            continue
        below = [stage for stage in training if stage.chain.startswith(f"{shard.chain}::")]
        first = min(below, key=lambda stage: len(stage.chain), default=None)
        among = round(first.count / shard.count) if first and shard.count else 1
        if among > 1:
            return among, sum(stage.self_ms for stage in below) * (1.0 - 1.0 / among)
    return None, None
