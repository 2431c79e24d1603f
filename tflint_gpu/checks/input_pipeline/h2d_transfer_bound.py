"""TFG152: copies of input to the GPU that no kernel hides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.input_costs import exposed_input
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Copies, Evidence

#: So many copies a step are a dict of features that are sent one by one.
MANY_COPIES = 32


class H2dTransferBound(Check):
    """The median step spends a tenth of its time on copies to the GPU while nothing else runs there."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop where copies, rather than making the batch, hold the step up."""
        if evidence.gpu_busy_share is None or not evidence.saw_steps:
            return
        waiting, copying = exposed_input(evidence)
        share = self.options["share"]
        if copying < share and not (copying > waiting and copying + waiting >= share):
            return
        copies = evidence.copies
        found = self.at(
            place_of(evidence),
            f"{copying:.0%} of the step the GPU only takes in data{_volume(copies)}: {_advice(copies)}.",
        )
        measures = [Measure("host_to_device_share", round(copying, 4))]
        if copies is not None and copies.host_to_device_bytes:
            measures.append(Measure("host_to_device_bytes", round(copies.host_to_device_bytes), "B"))
            measures.append(Measure("host_to_device_copies", round(copies.host_to_device_count, 1)))
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=tuple(measures),
            impact=Impact(round(copying, 4), "trace: copies to the GPU that nothing hides"),
        )


def _volume(copies: Copies | None) -> str:
    if copies is None or not copies.host_to_device_bytes:
        return ""
    return f" ({copies.host_to_device_bytes / 2**20:.3g} MiB in {copies.host_to_device_count:.0f} copies)"


def _advice(copies: Copies | None) -> str:
    if copies is not None and copies.host_to_device_count >= MANY_COPIES:
        return "pack features into few tensors, and let prefetch_to_device copy while the last step computes"
    return "send uint8 or float16 and widen on the GPU, or let prefetch_to_device copy during the last step"
