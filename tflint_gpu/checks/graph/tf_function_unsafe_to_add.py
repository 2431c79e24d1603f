"""TFG609: a line that keeps a training step from being made a graph function as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.blockers import blockers
from tflint_gpu.checks.check import Check
from tflint_gpu.checks.graph.eager_train_step import is_chosen, steps_by_hand
from tflint_gpu.findings import Finding, Related, Severity

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
        for step, loop, activation in steps_by_hand(program):
            if activation is None or is_chosen(step, loop, program):
                continue
            for blocker in blockers(activation.function, program):
                if blocker.location in seen:
                    continue
                seen.add(blocker.location)
                yield self.at(
                    blocker.location,
                    f"{'Change' if blocker.known else 'Look at'} this line before the step becomes a tf.function, "
                    f"which ends the GPU's waits for Python: {blocker.reason}.",
                    # What is not known may be no hindrance: the fix that is not made says it.
                    severity=None if blocker.known else Severity.HINT,
                    qualname=activation.function.qualname,
                    related=(Related(activation.function.location, "the step"),),
                )
