"""TFG852: one GPU has more to do in a step, and the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.gpus import replicas
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence
    from tflint_gpu.trace.usage import GpuUse

#: The slowest replica holds the others up from this share of the step on.
HELD_UP = 0.10


class ReplicaImbalance(Check):
    """Replicas whose kernels take clearly different times: the early ones wait in the all-reduce."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop that names the slowest GPU."""
        found = unbalanced(evidence)
        if found is None:
            return
        slowest, share = found
        gpus = replicas(evidence)
        yield self.at(
            place_of(evidence),
            f"{slowest.name} computes longer than the others, which wait for it {share:.0%} of the "
            "step: look for work on one device only, uneven batches, or a slower GPU among them.",
        ).with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("slowest_compute_ms", round(_compute(slowest), 3), "ms"),
                Measure("fastest_compute_ms", round(min(map(_compute, gpus)), 3), "ms"),
            ),
            impact=Impact(round(share, 4), "trace: replicas wait for the slowest"),
        )


def unbalanced(evidence: Evidence) -> tuple[GpuUse, float] | None:
    """Return the slowest replica, and the share of the step that the others wait for it; None below 10 %."""
    gpus, step = replicas(evidence), _step(evidence)
    if not gpus or not step or not evidence.saw_steps:
        return None
    slowest = max(gpus, key=_compute)
    others = [_compute(gpu) for gpu in gpus if gpu is not slowest]
    share = (_compute(slowest) - sum(others) / len(others)) / step
    return (slowest, share) if share >= HELD_UP else None


def _compute(gpu: GpuUse) -> float:
    return gpu.compute_ms or 0.0


def _step(evidence: Evidence) -> float:
    return sum(step.step_ms for step in evidence.steps) / max(1, len(evidence.steps))
