"""TFG101: a training dataset that ends in a synchronous transformation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline, Program


class MissingPrefetch(Check):
    """The last stage of the training pipeline is synchronous."""

    needles = (".fit", "GradientTape", "apply_gradients")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the end of every pipeline that reaches training without anything asynchronous at its end."""
        for run in program.runs:
            pipeline = run.pipeline
            if pipeline is not None and not pipeline.distributed and not ends_asynchronously(pipeline):
                ...
