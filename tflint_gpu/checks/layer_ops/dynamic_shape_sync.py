"""TFG507: an op in the step whose result has a size that only its data tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loudest, placements_of
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_MASKS = "multiply by the mask, or select with tf.where(mask, x, 0)"
_PADDED = "keep the padded tensor and its mask"

#: Functions whose result has a size that the GPU must tell the host: the ops to look for, and what to do instead.
_CALLS: dict[str, tuple[tuple[str, ...], str]] = {
    "tf.where": (("Where",), "use tf.where(mask, x, y) or the mask itself"),
    "tf.compat.v1.where": (("Where",), "use tf.where(mask, x, y) or the mask itself"),
    "tf.boolean_mask": (("Where",), _MASKS),
    "tf.ragged.boolean_mask": (("Where",), _MASKS),
    "keras.ops.nonzero": (("Where",), _MASKS),
    "tf.experimental.numpy.nonzero": (("Where",), _MASKS),
    "tf.unique": (("Unique",), "count in the dataset, or with tf.math.unsorted_segment_sum"),
    "tf.unique_with_counts": (("UniqueWithCounts",), "count with tf.math.bincount of a fixed length"),
    "tf.dynamic_partition": (("DynamicPartition",), _MASKS),
    "tf.sparse.from_dense": (("Where",), "keep the dense tensor"),
    "tf.RaggedTensor.from_tensor": (("Where",), _PADDED),
}


class DynamicShapeSync(Check):
    """Calls in every training step whose result is as long as the data says."""

    needles: ClassVar[tuple[str, ...]] = tuple(sorted({f"{name.rpartition('.')[2]}(" for name in _CALLS} | {"["}))
    only_on_gpu: ClassVar[str] = "how long it waits for the size"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield such calls in model, loss and step; in the dataset and after training they are fine."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_CALLS):
            if selects(call) or not in_training_step(call, program):
                continue
            ops, remedy = _CALLS[call.callee]
            yield self.at(
                call,
                f"the size of this result depends on its data: the GPU stops to tell it to the host before it can "
                f"go on; {remedy}",
                ops=ops,
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by what a GPU idles outside input wait: no stop costs more, and without one nothing is known."""
        busy = evidence.gpu_busy_share
        if busy is None or not placements_of(finding, evidence):
            return None
        idle = max(0.0, 1.0 - busy - (evidence.share("input_wait") or 0.0))
        copies = evidence.copies
        count = (
            (Measure("device_to_host_copies_per_step", round(copies.device_to_host_count, 2)),) if copies else ()
        )
        if copies is not None and copies.device_to_host_count < 1:
            return Judgement(Verdict.REFUTED, count)
        return weigh(idle, "idle_share", "trace: GPU idle outside input wait, an upper bound", *count)


def selects(call: Call) -> bool:
    """Say whether ``tf.where`` is given what to choose from: then it is a plain select of the mask's size."""
    if not call.callee.endswith(".where"):
        return False
    return call.open or len(call.args) > 1 or bool(call.kwargs.keys() & {"x", "y"})
