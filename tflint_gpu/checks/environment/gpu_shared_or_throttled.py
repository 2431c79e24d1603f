"""TFG951: the GPU was not this run's alone, or not at full speed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence


#: A GPU at full load runs into its power cap: that is the GPU at work, and nothing to tell.
_NORMAL = "power cap"


class GpuSharedOrThrottled(Check):
    """Other processes compute on the GPU, or the driver lowered its clocks, while the steps were measured."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding that says how far the figures of the trace can be trusted."""
        samples = evidence.samples
        if samples is None or not samples.count:
            return
        company = samples.other_processes or 0
        lowered = [reason for reason in samples.throttled if reason != _NORMAL]
        if not company and not lowered:
            return
        measures = [Measure("other_processes", float(company))] if company else []
        if samples.sm_clock_mhz:
            measures.append(Measure("sm_clock", round(samples.sm_clock_mhz), "MHz"))
        yield self.at(
            place_of(evidence),
            f"{_causes(company, lowered)}: the figures of this trace vary with that, and so does training; trace "
            "again on a free, cool GPU before comparing.",
        ).with_verdict(Verdict.OBSERVED, evidence=tuple(measures))


def _causes(company: int, lowered: list[str]) -> str:
    told = []
    if company:
        told.append(f"{company} other {'process' if company == 1 else 'processes'} used the GPU meanwhile")
    if lowered:
        told.append(f"its clocks were lowered by {', '.join(lowered)}")
    text = ", and ".join(told)
    return text[0].upper() + text[1:]
