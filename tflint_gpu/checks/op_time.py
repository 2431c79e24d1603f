"""How the time of ops and of loops of ops, wherever they ran, becomes a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from tflint_gpu.checks.check import Judgement
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Finding, Measure, Verdict
from tflint_gpu.trace.evidence import Evidence, GraphLoop, Placement, touches


def judge_time(placements: Sequence[Placement], evidence: Evidence, metric: str, basis: str) -> Judgement | None:
    """Judge a cause by the time per step of the ops it is made of; None where no time of theirs was seen."""
    times = [placement.ms for placement in placements if placement.ms is not None]
    share = share_of_step(sum(times), evidence) if times else None
    if share is None:
        return None
    count = Measure("ops_per_step", float(sum(placement.count for placement in placements)))
    return weigh(share, metric, basis, count, Measure("op_time", round(sum(times), 4), "ms"))


def loops_of(finding: Finding, evidence: Evidence) -> list[GraphLoop]:
    """Return the loops of the step's graph that the lines of `finding` made."""
    return [loop for loop in evidence.loops if loop.in_step and touches(loop.spot, finding.location)]


def loop_figures(loops: Sequence[GraphLoop]) -> tuple[Measure, ...]:
    """Return how often `loops` go round in a step and how many ops each round runs."""
    rounds = [loop.rounds for loop in loops if loop.rounds is not None]
    if not loops:
        return ()
    figures = (Measure("ops_per_round", float(sum(loop.body_ops for loop in loops))),)
    return (Measure("rounds_per_step", round(max(rounds), 1)), *figures) if rounds else figures


def judge_loop(finding: Finding, evidence: Evidence) -> Judgement | None:
    """Judge a loop in the step: on a GPU by the launches of the step, else by the loop's own time.

    Where no graph holds a loop (Python unrolled it) the time of its ops counts. None where the step never saw it.
    """
    loops = loops_of(finding, evidence)
    here = [p for p in evidence.placements if p.in_step and touches(p.spot, finding.location)]
    if not loops and not here:
        return None
    if evidence.gpu_busy_share is not None:
        launch, kernels = evidence.share("launch"), evidence.kernels
        if launch is None or kernels is None:
            return None
        count = Measure("kernels", kernels.per_step)
        return weigh(launch, "launch_share", "trace: launching kernels", count, *loop_figures(loops))
    whole = [loop.ms for loop in loops if loop.ms is not None]
    times = whole or [placement.ms for placement in here if placement.ms is not None]
    share = share_of_step(sum(times), evidence) if times else None
    return None if share is None else loop_on_cpu(share, "trace: the loop, on a CPU", loops)


def loop_on_cpu(share: float, basis: str, loops: Sequence[GraphLoop]) -> Judgement:
    """Judge a loop by the `share` of the step that it takes on a CPU, which little of it does not settle."""
    judged = weigh(share, "loop_share", basis, *loop_figures(loops))
    if judged.verdict is not Verdict.MINOR:
        return judged
    reason = "short on this CPU; a GPU launches every op of every round by itself"
    return Judgement(Verdict.UNMEASURED, judged.measures, reason=reason)
