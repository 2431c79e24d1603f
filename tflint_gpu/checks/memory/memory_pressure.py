"""TFG451: what is in use of the GPU's memory comes close to the limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence


class MemoryPressure(Check):
    """The allocator's own peak reaches 90 % of what it may take; what NVML calls used says nothing."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where the fullest GPU's allocator handed out nearly all it may."""
        memory = evidence.memory
        if memory is None or memory.used_share < self.options["share"]:
            return
        found = self.at(
            place_of(evidence),
            f"Tensors fill {memory.used_share:.0%} of the GPU's memory: cuDNN falls back to slower algorithms, "
            "and a larger batch does not fit; use mixed precision or recompute activations.",
        )
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("peak_memory", float(memory.peak_bytes), "B"),
                Measure("memory_limit", float(memory.limit_bytes), "B"),
            ),
        )
