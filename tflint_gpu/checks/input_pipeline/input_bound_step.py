"""TFG151: the device waits for data, whatever makes it late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.input_costs import exposed_input
from tflint_gpu.checks.verdicts import by_experiment, place_of
from tflint_gpu.findings import Finding, Impact, Location, Measure, Related, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, Spot


class InputBoundStep(Check):
    """The median step spends a tenth or more of its time waiting for input."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop when input holds up the median step."""
        if not evidence.saw_steps or evidence.window is None:
            return
        waiting, copying = exposed_input(evidence)
        share = waiting + copying
        cached = evidence.experiment("cached-batch")
        judged = by_experiment(cached)
        place = place_of(evidence)
        if share < self.options["warning"] or copying > waiting:
            return  # where copies are the larger part, h2d-transfer-bound tells what to do about them
        if judged is not None and judged.verdict is Verdict.REFUTED:
            return
        measures = [
            Measure("input_wait_share", round(waiting, 4)),
            Measure("host_to_device_share", round(copying, 4)),
        ]
        impact = Impact(round(share, 4), "trace: wait for input")
        if cached is not None and cached.gain:
            measures.append(Measure("cached_batch_speedup", round(cached.speedup, 3)))
            impact = Impact(round(cached.saved_share, 4), "what-if: cached batch")
        yield self.at(
            place,
            _message(share, evidence),
            severity=Severity.ERROR if share >= self.options["error"] else Severity.WARNING,
            related=_slowest(evidence),
        ).with_verdict(Verdict.OBSERVED, evidence=tuple(measures), impact=impact)


def _message(share: float, evidence: Evidence) -> str:
    where = "the GPU" if evidence.environment.device.kind == "gpu" else "the step (traced on a CPU)"
    slow = _slowest_stage(evidence)
    whom = f"; most of it goes to {slow[0]}" if slow else ""
    return (
        f"{share:.0%} of the step {where} waits for input{whom}. Make batches faster or further ahead of the step."
    )


def _slowest_stage(evidence: Evidence) -> tuple[str, Spot | None] | None:
    """Return what takes most of the input's own time, in the code's words, and where it stands."""
    costs = [
        (source.ms_per_step, f"the {source.kind} {source.name}".rstrip(), source.spot)
        for source in evidence.python_input
    ]
    costs += [
        (stage.self_ms, f"the stage {stage.op}", stage.spot)
        for stage in evidence.pipelines
        if stage.op != "Prefetch"
    ]
    if not costs:
        return None
    _, name, spot = max(costs, key=lambda cost: cost[0])
    return name, spot


def _slowest(evidence: Evidence) -> tuple[Related, ...]:
    slow = _slowest_stage(evidence)
    return (Related(_location(slow[1]), "most of the input's time goes here"),) if slow and slow[1] else ()


def _location(spot: Spot) -> Location:
    return Location(spot.path, spot.line, cell=spot.cell)
