"""How the time of ops, wherever they ran, becomes a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from tflint_gpu.checks.check import Judgement
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Measure
from tflint_gpu.trace.evidence import Evidence, Placement


def judge_time(placements: Sequence[Placement], evidence: Evidence, metric: str, basis: str) -> Judgement | None:
    """Judge a cause by the time per step of the ops it is made of; None where no time of theirs was seen."""
    times = [placement.ms for placement in placements if placement.ms is not None]
    share = share_of_step(sum(times), evidence) if times else None
    if share is None:
        return None
    count = Measure("ops_per_step", float(sum(placement.count for placement in placements)))
    return weigh(share, metric, basis, count, Measure("op_time", round(sum(times), 4), "ms"))
