"""TFG609: a line that keeps a training step from being made a graph function as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.blockers import blockers
from tflint_gpu.checks.check import Check
from tflint_gpu.checks.graph.eager_train_step import steps_by_hand
from tflint_gpu.findings import Finding, Related

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program


class TfFunctionUnsafeToAdd(Check):
    """Reports, for each step that eager-train-step finds, the lines that would not survive tracing."""

    needles = ("GradientTape", "minimize(")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a line of a step function that Python drives op by op."""
        if not program.target.on_tensorflow:
            return
        seen = set()
        for _, _, activation in steps_by_hand(program):
            for blocker in blockers(activation.function, program) if activation else ():
                if blocker.location in seen:
                    continue
                seen.add(blocker.location)
                yield self.at(
                    blocker.location,
                    f"This line keeps the step from becoming a tf.function, which spares the GPU waits: "
                    f"{blocker.reason}.",
                    qualname=activation.function.qualname if activation else "",
                    related=(Related(activation.function.location, "the step"),) if activation else (),
                )
