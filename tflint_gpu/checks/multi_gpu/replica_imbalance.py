"""TFG852: one GPU or one worker has more to do in a step, and the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.gpus import FEW_STEPS, replicas
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Impact, Measure, Verdict
from tflint_gpu.trace.evidence import straggler

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence
    from tflint_gpu.trace.usage import GpuUse, HostUse

#: The slowest replica holds the others up from this share of the step on.
HELD_UP = 0.10


class ReplicaImbalance(Check):
    """Replicas whose kernels take clearly different times: the early ones wait in the all-reduce."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop that names the slowest GPU, else the slowest host."""
        found = unbalanced(evidence)
        if found is not None:
            slowest, share = found
            times = [_compute(gpu) for gpu in replicas(evidence)]
            message = (
                f"{slowest.name} computes longer than the others, which wait for it {share:.0%} of the step: "
                "look for work on one device only, uneven batches, or a slower GPU among them."
            )
            yield self._finding(evidence, message, share, "compute", times)
        elif (late := lagging(evidence)) is not None:
            host, share = late
            why = "it waits for its input" if _by_input(host, evidence) else "uneven batches, or a slower machine"
            message = (
                f"{host.name} takes longer for its own part of a step than the other hosts, which wait for it "
                f"{share:.0%} of the step: {why}."
            )
            times = [each.own_ms for each in evidence.hosts if each.own_ms is not None]
            yield self._finding(evidence, message, share, "own", times)

    def _finding(self, evidence: Evidence, message: str, share: float, what: str, times: list[float]) -> Finding:
        return self.at(place_of(evidence), message).with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure(f"slowest_{what}_ms", round(max(times), 3), "ms"),
                Measure(f"fastest_{what}_ms", round(min(times), 3), "ms"),
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


def lagging(evidence: Evidence) -> tuple[HostUse, float] | None:
    """Return the host that the others wait for, and for which share of the step; None below 10 %.

    What a host does without the others counts, its wait for input too: a GPU is early or late by both.
    """
    found = straggler(evidence.hosts)
    if found is None or found.share < HELD_UP or any(host.steps < FEW_STEPS for host in evidence.hosts):
        return None
    return next(host for host in evidence.hosts if host.name == found.name), found.share


def _by_input(late: HostUse, evidence: Evidence) -> bool:
    """Say whether at least half of what `late` takes longer is its wait for input."""
    others = [host for host in evidence.hosts if host is not late]
    longer = (late.own_ms or 0.0) - sum(host.own_ms or 0.0 for host in others) / len(others)
    waits = (late.input_ms or 0.0) - sum(host.input_ms or 0.0 for host in others) / len(others)
    return waits * 2 >= longer


def _compute(gpu: GpuUse) -> float:
    return gpu.compute_ms or 0.0


def _step(evidence: Evidence) -> float:
    return sum(step.step_ms for step in evidence.steps) / max(1, len(evidence.steps))
