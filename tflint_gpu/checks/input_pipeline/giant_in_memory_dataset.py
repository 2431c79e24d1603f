"""TFG118: arrays of more than a gigabyte that are copied into the runtime at start-up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.sizes import sizes_of, total_bytes
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.program.values import Dataset

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program

#: Constants in a graph function end here: protocol buffers hold no more.
GRAPH_LIMIT = 2 * 2**30

_SOURCES = ("tf.data.Dataset.from_tensor_slices", "tf.data.Dataset.from_tensors")


class GiantInMemoryDataset(Check):
    """A dataset or a fit over arrays that are huge by their literal shapes."""

    needles: ClassVar[tuple[str, ...]] = ("from_tensor", ".fit")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield sources whose arrays are known to be larger than the option `bytes`; unknown sizes are no case."""
        yield from loudest((*self._sources(program), *self._fits(program)))

    def _sources(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_SOURCES):
            size = total_bytes(sizes_of(call.argument("tensors")))
            if size < self.options["bytes"] or call.context.debug:
                continue
            limit = (
                "; in a graph function more than 2 GB fails"
                if call.context.in_graph and size > GRAPH_LIMIT
                else ""
            )
            yield self.at(
                call,
                f"{call.callee.rpartition('.')[2]} copies {size / 1e9:.1f} GB into the runtime before the first "
                f"step, and the GPU waits{limit}; stream slices from files or a memory map",
            )

    def _fits(self, program: Program) -> Iterator[Finding]:
        for run in program.runs:
            if run.kind != "fit" or run.call is None or isinstance(run.data, Dataset) or run.call.context.debug:
                continue
            size = total_bytes([*sizes_of(run.data), *sizes_of(run.call.argument("y"))])
            if size >= self.options["bytes"]:
                # Keras indexes the arrays in place: a second copy and a slow start, but no wait in the steps.
                yield self.at(
                    run.call,
                    f"fit copies arrays of {size / 1e9:.1f} GB before its first step, and the GPU waits for "
                    "that; stream them from files with tf.data",
                    severity=Severity.INFO,
                )
