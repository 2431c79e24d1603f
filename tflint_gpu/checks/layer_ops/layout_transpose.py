"""TFG510: images with channels first, or turned by hand, where Tensor Cores want channels last."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.op_time import judge_time
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loudest, placements_of
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Related
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, Items, Produced, Tensor, Value
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Calls that set the layout of everything built later.
_SETTERS = ("keras.backend.set_image_data_format", "keras.config.set_image_data_format")

_TRANSPOSES = ("tf.transpose", "keras.ops.transpose", "keras.backend.permute_dimensions")

#: The orders that turn images between channels last and channels first.
_TURNS = ((0, 3, 1, 2), (0, 2, 3, 1))

_LAYOUTS = ("channels_first", "channels_last", "NCHW", "NHWC")

#: Layers and ops that work on images, by the start of their name.
_IMAGE_LAYERS = ("Conv", "DepthwiseConv", "SeparableConv", "MaxPool", "AveragePool", "UpSampling", "ZeroPadding")
_IMAGE_OPS = ("tf.nn.conv2d", "tf.nn.max_pool", "tf.nn.avg_pool", "tf.nn.depthwise_conv2d", "tf.image.")

#: Layers that leave the layout alone: what stands before them decides.
_BETWEEN = ("Activation", "ReLU", "LeakyReLU", "BatchNormalization", "Dropout", "Add")

_FIRST = (
    "with channels first the runtime transposes around convolutions or leaves the Tensor Cores out: the GPU moves "
    'data instead of computing; use "channels_last"'
)


class LayoutTranspose(Check):
    """``channels_first`` in a trained model, or images transposed by hand between its convolutions."""

    needles: ClassVar[tuple[str, ...]] = ("channels_first", "NCHW", "transpose", "permute_dimensions", "Permute(")
    only_on_gpu: ClassVar[str] = "which kernels only transpose"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield where a layout is set, and each transpose of images; a layout chosen at run time is fine."""
        if program.target.on_tensorflow and not hides_gpus(program) and program.trains():
            yield from self._layout(program)
            yield from loudest(self._by_hand(program))

    def _layout(self, program: Program) -> Iterator[Finding]:
        """Yield one finding for what sets the layout, else one a file for the layers that do."""
        for call in program.calls_to(*_SETTERS):
            if literal(call.argument("data_format", 0)) == "channels_first" and not call.context.debug:
                yield self.at(call, _FIRST, layout=True)
                return
        by_file: dict[object, list[Call]] = {}
        for call in _with_channels_first(program):
            by_file.setdefault((call.location.path, call.location.cell), []).append(call)
        for calls in by_file.values():
            others = {call.location for call in calls[1:]} - {calls[0].location}
            related = tuple(Related(place, "this one too") for place in sorted(others)[:3])
            yield self.at(calls[0], _FIRST, related=related, layout=True)

    def _by_hand(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_TRANSPOSES, "keras.layers.Layer.__call__"):
            order = _order(call.argument("perm", 1) or call.argument("axes", 1) or call.argument("pattern", 1))
            turns = order in _TURNS or _permutes(call)
            if not turns or any(_asks_layout(guard.test) for guard in call.context.all_guards):
                continue
            if _among_images(call, program) and in_training_step(call, program):
                yield self.at(
                    call,
                    "turning images to another layout copies them whole in every step, and the GPU moves data "
                    "instead of computing; keep channels last, and turn them once in the dataset",
                    ops=("Transpose",),
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the kernels that only transpose; a transpose of one's own also by the time of its op."""
        kernels, busy = evidence.kernels, evidence.gpu_busy_share
        if busy is not None and kernels is not None and kernels.transpose_share is not None:
            return weigh(kernels.transpose_share * busy, "transpose_share", "trace: kernels that transpose")
        if finding.detail.get("layout"):
            return None
        return judge_time(placements_of(finding, evidence), evidence, "op_share", "trace: time of the transpose")


def _with_channels_first(program: Program) -> Iterator[Call]:
    """Yield the layers of trained models, and the ops of steps, that are given channels first by a literal."""
    for model in program.models:
        for layer in model.layers if model.trained else ():
            slow_once = layer.callee.endswith("Conv3D") and program.target.tensorflow < (2, 6)
            name = layer.callee.rpartition(".")[2]
            images = name.startswith(_IMAGE_LAYERS) and not name.endswith("1D")
            if images and literal(layer.argument("data_format")) == "channels_first" and not slow_once:
                yield layer
    for name in ("conv2d", "max_pool2d", "avg_pool2d", "depthwise_conv2d", "max_pool", "avg_pool"):
        for call in program.calls_to(f"tf.nn.{name}"):
            if literal(call.argument("data_format")) == "NCHW" and in_training_step(call, program):
                yield call


def _asks_layout(test: Value | None) -> bool:
    """Say whether a branch depends on the layout: one arm then stands for users who have chosen another."""
    return any(isinstance(part, Const) and part.value in _LAYOUTS for part in walk(test))


def _order(value: Value | None) -> tuple[object, ...]:
    """Return a literal order of dimensions, () where it is not one."""
    if isinstance(value, Items) and value.complete:
        return tuple(item.value if isinstance(item, Const) else math.nan for item in value.items)
    if isinstance(value, Const) and isinstance(value.value, (tuple, list)):
        return tuple(value.value)
    return ()


def _permutes(call: Call) -> bool:
    """Say whether `call` applies a ``Permute`` layer that turns images."""
    layer = call.receiver
    if not isinstance(layer, Produced) or layer.callee != "keras.layers.Permute":
        return False
    return _order(layer.call.argument("dims", 0)) in ((3, 1, 2), (2, 3, 1))


def _among_images(call: Call, program: Program) -> bool:
    """Say whether a transpose stands before or behind a convolution or a pooling: in attention it belongs."""
    if call.args and _from_image(call.args[0]):
        return True
    for later in program.calls_to("keras.layers.Layer.__call__", *(_IMAGE_OPS[:4])):
        first = later.args[0] if later.args else None
        if isinstance(first, Tensor) and first.origin is call and _works_on_images(later):
            return True
    return False


def _from_image(value: Value) -> bool:
    """Say whether `value` is the result of work on images, perhaps normalised or activated since."""
    for _ in range(4):
        if not isinstance(value, Tensor) or value.origin is None:
            return False
        if _works_on_images(value.origin):
            return True
        layer = value.origin.receiver
        between = isinstance(layer, Produced) and layer.callee.rpartition(".")[2] in _BETWEEN
        if not (between or value.origin.callee.startswith("tf.nn.")) or not value.origin.args:
            return False
        value = value.origin.args[0]
    return False


def _works_on_images(call: Call) -> bool:
    layer = call.receiver
    if call.callee.endswith("__call__"):
        name = layer.callee.rpartition(".")[2] if isinstance(layer, Produced) else ""
        return name.startswith(_IMAGE_LAYERS) and "1D" not in name
    return call.callee.startswith(_IMAGE_OPS)
