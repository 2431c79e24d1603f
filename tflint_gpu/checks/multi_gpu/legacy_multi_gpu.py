"""TFG806: several GPUs by ways that TensorFlow 2 dropped or that are slower than its strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.findings import Finding
from tflint_gpu.program.context import Loop, Scope
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Attribute, Const, Element, Operation, Produced

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program

#: Calls that make a device block a tower: a copy of the model's forward or backward pass.
_TOWERS = (
    "tf.GradientTape.gradient",
    "keras.Model.__call__",
    "keras.optimizers.Optimizer.compute_gradients",
    "tf.gradients",
    "tf.compat.v1.gradients",
)


_DEVICE_LISTS = ("tf.config.list_logical_devices", "tf.config.list_physical_devices")


class LegacyMultiGpu(Check):
    """`multi_gpu_model`, or towers made by hand with ``tf.device``."""

    needles: ClassVar[tuple[str, ...]] = ("multi_gpu_model", ".device(", "import device")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield calls of `multi_gpu_model` and loops that build a tower on each GPU."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._calls(program), *self._by_hand(program)))

    def _calls(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.utils.multi_gpu_model"):
            gone = (
                "is gone since TensorFlow 2.4"
                if program.target.tensorflow >= (2, 4)
                else "splits batches on the CPU"
            )
            yield self.at(
                call, f"multi_gpu_model {gone} and left the GPUs waiting for its host copies; use MirroredStrategy"
            )

    def _by_hand(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_TOWERS):
            if scope := _numbered_gpu(call):
                yield self.at(
                    scope.location,
                    "towers by hand run one GPU after the other from Python and copy gradients through the host; "
                    "MirroredStrategy runs them at once and all-reduces between the GPUs",
                    qualname=call.qualname,
                )


def _numbered_gpu(call: Call) -> Scope | None:
    """Return the device block around `call` whose GPU a loop names: ``tf.device(f"/gpu:{i}")``, ``gpu.name``."""
    scope = call.context.scope("device")
    if scope is not None and isinstance(scope.value, Attribute) and scope.value.name == "name":
        drawn = scope.value.base
        source = drawn.source if isinstance(drawn, Element) else None
        return scope if isinstance(source, Produced) and source.callee in _DEVICE_LISTS else None
    if scope is None or not isinstance(scope.value, Operation) or scope.value.operator not in ("format", "+"):
        return None
    words = "".join(str(part.value) for part in walk(scope.value) if isinstance(part, Const)).lower()
    frames = list(call.context)
    around = any(isinstance(frame, Loop) for frame in frames[frames.index(scope) :])
    return scope if "gpu" in words and around else None
