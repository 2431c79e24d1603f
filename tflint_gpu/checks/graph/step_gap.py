"""TFG652: the GPU idles between steps while the host does something else than making input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.loops import FEW_EAGER_OPS
from tflint_gpu.checks.verdicts import place_of, share_of_step, without_overhead
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence

#: From this share of the step on a gap is worth a finding of its own.
GAP_SHARE = 0.10


class StepGap(Check):
    """Observes time in which the GPU is idle and neither input, launches, copies nor compilation explain it."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where host work fills 10 % of the step or more while the GPU waits."""
        if evidence.gpu_busy_share is None or not evidence.saw_steps:
            return
        idle = (evidence.share("host") or 0.0) + (evidence.share("unknown") or 0.0)
        gap = without_overhead(idle, evidence)
        if gap < GAP_SHARE:
            return
        found = self.at(
            place_of(evidence),
            f"The GPU idles {gap:.0%} of the step, and not for input: {_cause(evidence)}.",
        )
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(Measure("gap_share", round(gap, 4)),),
            impact=Impact(round(gap, 4), "trace: GPU idle, host busy elsewhere"),
        )


def _cause(evidence: Evidence) -> str:
    """Name the largest thing seen that Python does between steps; without one, the places to look."""
    callbacks = max(evidence.callbacks, key=lambda cost: cost.ms_per_step, default=None)
    share = share_of_step(callbacks.ms_per_step, evidence) if callbacks else None
    if callbacks and share and share >= 0.03:
        return f"the callback {callbacks.name} takes {share:.0%} of the step between two batches"
    retraced = max(evidence.functions, key=lambda traced: traced.retraces_after_warmup, default=None)
    if retraced and retraced.retraces_after_warmup:
        return f"{retraced.name} was traced again {retraced.retraces_after_warmup} times after warm-up"
    if evidence.eager and evidence.eager.ops_per_step >= FEW_EAGER_OPS:
        count = evidence.eager.ops_per_step
        return f"Python runs {count:.0f} ops one by one in each step; put them into a tf.function"
    if evidence.copies and evidence.copies.device_to_host_count >= 1:
        return "a result is copied to the host in every step, and Python waits for it"
    return "look at what Python does between two steps, such as logging, metrics and callbacks"
