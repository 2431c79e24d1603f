"""TFG651: the host cannot launch kernels as fast as the GPU finishes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.graph.host_thread_contention import contended
from tflint_gpu.checks.verdicts import MINOR_SHARE, place_of, without_overhead
from tflint_gpu.findings import Finding, Impact, Measure, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, Kernels, WhatIf

#: XProf's lines for the share of the step that launching takes: moderate and high.
HIGH_SHARE = 0.15

#: Changes that put more work behind each launch, with the words the message uses for them.
_REMEDIES = {
    "xla": "XLA",
    "steps-per-execution-8": "steps_per_execution",
}


class LaunchBoundStep(Check):
    """Observes steps of many short kernels between which the GPU waits for the next launch."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where launching takes 3 % of the step or the signs of launch-bound kernels add up."""
        busy = evidence.gpu_busy_share
        if busy is None or not evidence.saw_steps or contended(evidence) is not None:
            return
        launch = without_overhead(evidence.share("launch") or 0.0, evidence)
        kernels = evidence.kernels
        starved = _starved(busy, evidence.share("input_wait") or 0.0, kernels)
        if kernels is not None and kernels.per_step <= FEW_KERNELS:
            return
        if launch < MINOR_SHARE and not starved:
            return
        share = max(launch, 1.0 - busy if starved else 0.0)
        detail = f" ({kernels.per_step:.0f} kernels a step, median {kernels.median_us:.0f} µs)" if kernels else ""
        found = self.at(
            place_of(evidence),
            f"The GPU waits {share:.0%} of the step for the host to launch kernels{detail}: {_advice(evidence)}.",
            severity=Severity.INFO if share < HIGH_SHARE else self.severity,
        )
        measures = [Measure("launch_share", round(launch, 4)), Measure("gpu_busy_share", round(busy, 4))]
        if kernels:
            measures += [
                Measure("kernels_per_step", round(kernels.per_step, 1)),
                Measure("kernel_median", round(kernels.median_us, 2), "µs"),
            ]
        yield found.with_verdict(Verdict.OBSERVED, evidence=tuple(measures), impact=_impact(share, evidence))


#: A step of so few kernels is compiled into large ones, or replayed as a CUDA graph.
FEW_KERNELS = 50


def _starved(busy: float, input_wait: float, kernels: Kernels | None) -> bool:
    """Say whether an idle GPU, no wait for input and a thousand tiny kernels name launching as the cause."""
    return kernels is not None and (
        busy < 0.6 and input_wait < 0.05 and kernels.per_step > 1000 and kernels.median_us < 20
    )


def _best(evidence: Evidence) -> WhatIf | None:
    remedies = (result for result in evidence.what_if if result.change in _REMEDIES or result.factor > 1)
    gains = (result for result in remedies if result.gain)
    return max(gains, key=lambda result: result.saved_share, default=None)


def _advice(evidence: Evidence) -> str:
    best = _best(evidence)
    if best is None:
        return "a larger batch, XLA or steps_per_execution put more work behind each launch"
    remedy = _REMEDIES.get(best.change) or f"a batch {best.factor} times as large"
    return f"{remedy} saves {best.saved_share:.0%} of the step here"


def _impact(share: float, evidence: Evidence) -> Impact:
    best = _best(evidence)
    if best is None:
        return Impact(round(share, 4), "trace: launch")
    return Impact(round(best.saved_share, 4), best.basis)
