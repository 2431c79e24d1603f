"""TFG351: the GPU counts as busy, and does little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, Kernels

#: From here on NVML's figure, or the profile's, reads as a well-used GPU.
HIGH = 0.90

#: Signs of little work behind it: kernels run less than this, power below this share of its limit, ...
GAPS = 0.70
POWER = 0.40
#: ... kernels that fill less than this of the GPU, where those make up half of the time, ...
OCCUPANCY = 0.25
#: ... or hundreds of kernels (a step) that are shorter than this (µs).
TINY, MANY = 10.0, 500


class HighUtilLowEfficiency(Check):
    """Utilization reads 90 % or more while power, occupancy or the kernels themselves tell of little work."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding with the strongest sign."""
        busy = evidence.gpu_busy_share
        nvml = evidence.samples.gpu_util if evidence.samples else None
        if busy is None or not evidence.saw_steps or max(busy, nvml or 0.0) < HIGH:
            return
        told = "nvidia-smi shows" if (nvml or 0.0) >= busy else "the profile shows"
        sign = _gaps(nvml, evidence) or _power(evidence) or _kernels(evidence.kernels)
        if sign is None:
            return
        words, figure = sign
        measures = [Measure("gpu_busy_share", round(busy, 4)), figure]
        if nvml is not None:
            measures.insert(0, Measure("nvml_utilization", round(nvml, 4)))
        yield self.at(
            place_of(evidence),
            f"A utilization of {max(busy, nvml or 0.0):.0%}, as {told}, is not work done: {words}.",
        ).with_verdict(Verdict.OBSERVED, evidence=tuple(measures))


def _gaps(nvml: float | None, evidence: Evidence) -> tuple[str, Measure] | None:
    """NVML counts a moment as busy when any kernel ran in it; the profile knows for how long."""
    total = sum(step.step_ms for step in evidence.steps)
    share = sum(step.kernel_ms or 0.0 for step in evidence.steps) / total if total else 1.0
    if nvml is None or nvml < HIGH or share >= GAPS:
        return None
    return f"kernels run {share:.0%} of the step, and the GPU waits in between", Measure(
        "kernel_share", round(share, 4)
    )


def _power(evidence: Evidence) -> tuple[str, Measure] | None:
    samples = evidence.samples
    if samples is None or not samples.power_w or not samples.power_limit_w:
        return None
    share = samples.power_w / samples.power_limit_w
    if share >= POWER:
        return None
    words = f"it draws {share:.0%} of its power limit, so most of the chip idles; give its kernels larger batches"
    return words, Measure("power", round(samples.power_w, 1), "W")


def _kernels(kernels: Kernels | None) -> tuple[str, Measure] | None:
    """Matrix products need no occupancy, so only a step of other kernels is judged by it."""
    if kernels is None:
        return None
    if kernels.occupancy is not None and kernels.occupancy < OCCUPANCY and (kernels.gemm_share or 0.0) < 0.5:
        words = f"its kernels fill {kernels.occupancy:.0%} of the GPU; larger batches or fused kernels fill more"
        return words, Measure("occupancy", round(kernels.occupancy, 4))
    if kernels.per_step >= MANY and kernels.median_us < TINY:
        words = f"it runs {kernels.per_step:.0f} kernels a step of {kernels.median_us:.0f} µs; XLA fuses them"
        return words, Measure("kernel_median", round(kernels.median_us, 2), "µs")
    return None
