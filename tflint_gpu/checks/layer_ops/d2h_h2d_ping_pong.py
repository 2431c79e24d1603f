"""TFG551: data that goes to the host and back in the middle of a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import MINOR_SHARE, place_of
from tflint_gpu.findings import Finding, Impact, Location, Measure, Related, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence

#: A single round trip counts from this share of the step on; several from `MINOR_SHARE`.
ONE_TRIP = 0.05
SEVERAL = 2.0


class D2hH2dPingPong(Check):
    """Large tensors leave the GPU between two kernels, the host works on them, and they come back."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where round trips of 64 KiB or more leave the GPU idle."""
        copies = evidence.copies
        length = sum(step.step_ms for step in evidence.steps) / max(1, len(evidence.steps))
        if evidence.gpu_busy_share is None or not evidence.saw_steps or copies is None or not length:
            return
        share = min(1.0, copies.round_trip_ms / length)
        if share < (MINOR_SHARE if copies.round_trips >= SEVERAL else ONE_TRIP):
            return
        op = copies.round_trip_op
        found = self.at(
            place_of(evidence),
            f"{share:.0%} of the step the GPU waits for data that {op or 'an op'} takes to the host and back; "
            "use an op with a GPU kernel, or move this into the dataset.",
            related=_lines(op, evidence),
        )
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("round_trip_share", round(share, 4)),
                Measure("round_trips_per_step", round(copies.round_trips, 1)),
            ),
            impact=Impact(round(share, 4), "trace: GPU idle between copies to the host and back"),
        )


def _lines(op: str, evidence: Evidence) -> tuple[Related, ...]:
    """Return the user's lines that put `op` into the step on the CPU."""
    spots = {
        placement.spot
        for placement in evidence.placements
        if placement.op == op and placement.in_step and placement.device == "cpu" and placement.spot
    }
    places = [Location(spot.path, spot.line, cell=spot.cell) for spot in spots]
    return tuple(Related(place, f"{op} runs on the CPU") for place in sorted(places, key=str)[:3])
