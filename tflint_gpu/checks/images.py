"""What is known of picture work in tf.data: decoders, crops, resizes and casts, in the order they happen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.sizes import WIDTHS
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, External, Items, Stage, Value

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline

#: Calls that turn a file's bytes into a picture, of bytes unless they are told otherwise.
DECODERS = frozenset(
    f"tf.{room}.{name}"
    for room in ("io", "image")
    for name in ("decode_image", "decode_jpeg", "decode_png", "decode_bmp", "decode_gif", "decode_and_crop_jpeg")
)

#: Cuts whose place is drawn or computed, behind which most of a decoded picture is thrown away.
CROPS = frozenset(
    f"tf.image.{name}" for name in ("random_crop", "stateless_random_crop", "crop_to_bounding_box", "central_crop")
)

#: Calls that make other pixels of a picture's, with its dtype or in floats.
RESIZES = frozenset({"tf.image.resize", "tf.image.resize_with_pad", "tf.compat.v1.image.resize_images"})

#: Methods of `tf.image.resize` that hand on the dtype they are given.
NEAREST = ("nearest", "nearest_neighbor")


def in_order(pipeline: Pipeline) -> Iterator[tuple[Stage, Call]]:
    """Yield the calls that the maps of `pipeline` make, in the order an element meets them."""
    for stage in pipeline.stages:
        if stage.op in ("map", "map_and_batch"):
            for call in stage.calls:
                if not call.context.debug:
                    yield stage, call


def decodes(stage: Stage) -> Call | None:
    """Return the call by which a stage decodes a picture, None where it decodes none."""
    return next((call for call in stage.calls if call.callee in DECODERS), None)


def resize_method(call: Call) -> str | None:
    """Return the method of a resize in lower case, None where it cannot be read."""
    value = call.argument("method")
    match value:
        case None:
            return "bilinear"
        case Const(value=str() as text):
            return text.lower()
        case External(name=name):
            return name.rpartition(".")[2].lower()
        case _:
            return None


def target_size(call: Call) -> tuple[int, int] | None:
    """Return height and width that a resize makes, None where they are not literal."""
    size = call.argument("size", 1)
    if isinstance(size, Items) and len(size.items) == 2:
        height, width = (constant(item) for item in size.items)
        return (height, width) if isinstance(height, int) and isinstance(width, int) else None
    if isinstance(size, Const) and isinstance(size.value, (tuple, list)) and len(size.value) == 2:
        return (size.value[0], size.value[1])
    return None


def dtype_name(value: Value | None) -> str | None:
    """Return the short name of the dtype that `value` is (``float32``), None where it cannot be read."""
    match value:
        case Const(value=str() as text):
            return text if text in WIDTHS else None
        case External(name=name):
            last = name.rpartition(".")[2]
            return last if last in WIDTHS else None
        case _:
            return None


def makes_floats(call: Call) -> bool:
    """Say whether `call` is a cast or conversion to 32-bit floats or wider."""
    if call.callee in ("tf.cast", "tf.image.convert_image_dtype", "tf.saturate_cast", "keras.ops.cast"):
        return dtype_name(call.argument("dtype", 1)) in ("float32", "float64", "double", "float")
    return call.callee == "tf.compat.v1.to_float"
