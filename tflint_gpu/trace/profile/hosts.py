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
    """Return among how many the input is shared out, and the ms a step that others' elements take.

    A shard that is asked once asks its input n times, and keeps one of the n. What lies below it is made n times
    too often. A distributed dataset is several pipelines that feed each other: the shard with the most work below
    counts. None where there is no such stage, or it was asked too rarely to tell.
    """
    found = [shared for shard in stages if shard.chain.endswith(_SHARD) and (shared := _below(shard, stages))]
    return max(found, key=lambda shared: shared[1], default=(None, None))


def _below(shard: PipelineStage, stages: Sequence[PipelineStage]) -> tuple[int, float] | None:
    """Return among how many `shard` shares out what is below it, and the ms a step that it throws away."""
    below = [
        stage
        for stage in stages
        if stage.pipeline == shard.pipeline and stage.chain.startswith(f"{shard.chain}::")
    ]
    first = min(below, key=lambda stage: len(stage.chain), default=None)
    among = round(first.count / shard.count) if first and shard.count else 1
    return (among, sum(stage.self_ms for stage in below) * (1.0 - 1.0 / among)) if among > 1 else None
