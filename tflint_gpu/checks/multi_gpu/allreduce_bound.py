"""TFG851: the GPUs exchange gradients while nothing else runs on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.gpus import replicas
from tflint_gpu.checks.multi_gpu.replica_imbalance import lagging, unbalanced
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence


class AllreduceBound(Check):
    """Collectives that no kernel hides take 10 % of the step or more."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop, unless the GPUs only wait there for a slower one."""
        gpus = replicas(evidence)
        share = evidence.share("collectives")
        if not gpus or share is None or not evidence.saw_steps or share < self.options["share"]:
            return
        if unbalanced(evidence) is not None or lagging(evidence) is not None:
            return
        found = self.at(
            place_of(evidence),
            f"{share:.0%} of the step {len(gpus)} GPUs only exchange gradients: give each a larger batch, "
            "exchange 16-bit gradients, or apply them every few steps.",
        )
        whole = sum(gpu.collective_ms or 0.0 for gpu in gpus) / len(gpus)
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("exposed_collectives_share", round(share, 4)),
                Measure("collectives_ms", round(whole, 3), "ms"),
                Measure("gpus", float(len(gpus))),
            ),
            impact=Impact(round(share, 4), "trace: collectives that nothing hides"),
        )
