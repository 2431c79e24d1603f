"""TFG552: much of the GPU's time goes into element-wise kernels that nothing fuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import by_experiment, place_of
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence

#: With more fused kernels than this, XLA compiles the step already.
COMPILED = 0.10


class UnfusedElementwise(Check):
    """Kernels that map elements one by one take 40 % of the GPU's time, and XLA is off."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop, unless XLA runs or a run with it gained nothing."""
        kernels, busy = evidence.kernels, evidence.share("device_compute")
        if kernels is None or not busy or not evidence.saw_steps:
            return
        fused, part = kernels.fused_share, kernels.elementwise_share
        if fused is None or part is None or fused >= COMPILED or part - fused < self.options["share"]:
            return
        tried = evidence.experiment("xla")
        if tried is not None and not tried.gain:
            return
        judged = by_experiment(tried)
        found = self.at(
            place_of(evidence),
            f"{part:.0%} of the GPU's time goes into element-wise kernels that each read and write all data; "
            "XLA (jit_compile=True) fuses them into a few.",
        )
        measures = [
            Measure("elementwise_of_kernel_time", round(part, 4)),
            Measure("kernels_per_step", round(kernels.per_step, 1)),
        ]
        # Without a run under XLA the gain is not known: fused kernels still read and write once.
        impact: Impact | None = judged.impact if judged else None
        yield found.with_verdict(Verdict.OBSERVED, evidence=tuple(measures), impact=impact)
