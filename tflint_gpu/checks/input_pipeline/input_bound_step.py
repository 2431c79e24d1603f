"""TFG151: the device waits for data, whatever makes it late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.input_costs import (
    begins_anew,
    compiled_again,
    exposed_input,
    keeps_ahead,
    negligible,
    restarted,
)
from tflint_gpu.checks.verdicts import by_experiment, place_of
from tflint_gpu.findings import Finding, Impact, Location, Measure, Related, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, Spot


class InputBoundStep(Check):
    """The median step spends a tenth or more of its time waiting for input."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop when input holds up the median step; figures are of all steps."""
        if not evidence.saw_steps or evidence.window is None:
            return
        waiting, copying = exposed_input(evidence)
        typical = waiting + copying
        cached = evidence.experiment("cached-batch")
        judged = by_experiment(cached)
        place = place_of(evidence)
        if restarted(evidence) or negligible(evidence):
            return
        waits, copies = evidence.share("input_wait") or 0.0, evidence.share("host_to_device") or 0.0
        share = waits + copies
        if min(typical, share) < self.options["warning"] or copying > waiting:
            return  # where copies are the larger part, h2d-transfer-bound tells what to do about them
        if judged is not None and judged.verdict is Verdict.REFUTED:
            return
        measures = [
            Measure("input_wait_share", round(waits, 4)),
            Measure("host_to_device_share", round(copies, 4)),
        ]
        impact = Impact(round(share, 4), "trace: wait for input")
        # A run without the wait that is not measurably faster does not clear the input, but nor does it accuse it.
        # Nor do the waits of a CPU whose input has time to spare: a busy machine makes those. Nor does what an
        # epoch of one or two steps takes to begin.
        # And one batch has one shape: what of its gain are spared compilations is no proof against the input.
        gained = cached.saved_share - compiled_again(evidence) if cached is not None else 0.0
        spared = cached is not None and gained < self.options["warning"] <= cached.saved_share
        no_gain = cached is not None and not cached.gain
        unsettled = no_gain or spared or keeps_ahead(evidence) or begins_anew(evidence)
        if cached is not None and gained > 0.0:
            measures.append(Measure("cached_batch_speedup", round(cached.speedup, 3)))
            impact = Impact(round(gained, 4), cached.basis)
        yield self.at(
            place,
            _message(share, evidence),
            severity=Severity.INFO if unsettled else self._severity(min(typical, share), evidence),
            related=_slowest(evidence),
        ).with_verdict(Verdict.OBSERVED, evidence=tuple(measures), impact=impact)

    def _severity(self, share: float, evidence: Evidence) -> Severity:
        if share >= self.options["error"]:
            return Severity.ERROR
        return Severity.INFO if _of_keras_itself(evidence) else Severity.WARNING


def _of_keras_itself(evidence: Evidence) -> bool:
    """Say whether no line of the program makes the input: Keras batches arrays by itself."""
    spots = [stage.spot for stage in evidence.pipelines] + [source.spot for source in evidence.python_input]
    return bool(evidence.sources and spots) and not any(spots)


def _message(share: float, evidence: Evidence) -> str:
    who = "The GPU" if evidence.environment.device.kind == "gpu" else "On this CPU the step"
    slow = _slowest_stage(evidence)
    whom = f"; most of it goes to {slow[0]}" if slow else ""
    waits = f"{who} waits for input for {share:.0%} of its time{whom}"
    return f"{waits}. Make batches faster or further ahead of the step."


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
