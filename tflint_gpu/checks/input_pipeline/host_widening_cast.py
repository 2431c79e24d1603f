"""TFG112: samples widened on the host, so that several times the bytes travel to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.images import (
    CROPS,
    DECODERS,
    NEAREST,
    RESIZES,
    dtype_name,
    in_order,
    makes_floats,
    resize_method,
    target_size,
)
from tflint_gpu.checks.map_functions import PYTHON_WRAPPERS, TRIVIAL
from tflint_gpu.checks.pipelines import training_pipelines
from tflint_gpu.checks.sizes import size_of, sizes_of
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant, walk
from tflint_gpu.program.values import Function, Items, Mapping, Operation, Produced, Subscript, Tensor, Value

if TYPE_CHECKING:
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

#: Pictures below this many bytes, and rows below that many, are no load for any bus.
SMALL_PICTURE = 64 * 64 * 3
SMALL_ROW = 1024
SMALL_EDGE = 64

#: Classes from which on a one-hot label is larger than many samples.
MANY_CLASSES = 1000

_PICTURE = (
    "This makes bytes floats on the host: four times as much is batched and copied while the GPU waits. Hand over "
    "uint8 and put Rescaling first in the model."
)
_BEFORE_CROP = (
    "The whole picture is cast before most of it is cropped away, so batches come late for the GPU. Crop first, "
    "cast what is left."
)
_ONE_HOT = (
    "One-hot vectors of {classes:,} are made on the host and copied to the GPU for each step. Keep the numbers; "
    "for labels use sparse_categorical_crossentropy."
)
_DOUBLE = (
    "float64 elements take twice the bytes to batch and to copy to the GPU, which casts them to float32 anyway. "
    "Make them float32."
)

#: Ops behind a cast that need no floats: they move pixels about.
_MOVES = (
    *("tf.image.random_flip", "tf.image.flip_", "tf.image.stateless_random_flip", "tf.image.rot90", "tf.reverse"),
    *("tf.image.transpose", "tf.image.pad_to_bounding_box", "tf.Tensor.", "tf.strings.", "tf.math.divide"),
)

#: NumPy functions whose result is float64 unless they are told otherwise.
_DOUBLES = (
    *("numpy.zeros", "numpy.ones", "numpy.empty", "numpy.linspace", "numpy.random.rand", "numpy.random.randn"),
    *("numpy.random.random", "numpy.random.normal", "numpy.random.uniform", "numpy.random.random_sample"),
)


class HostWideningCast(Check):
    """Casts to float of decoded pictures, float64 elements and huge one-hot labels in data for training."""

    needles: ClassVar[tuple[str, ...]] = (
        "cast",
        "convert_image",
        "one_hot",
        "to_categorical",
        "from_tensor",
        "64",
        "double",
    )
    only_on_gpu: ClassVar[str] = "what the copies to it cost"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield what surely widens large elements on the host; unknown sizes of arrays and tables do not count."""
        yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        doubles = any(call.args and constant(call.args[0]) == "float64" for call in _floatx(program))
        for pipeline in training_pipelines(program):
            yield from self._casts(pipeline)
            for stage, call in in_order(pipeline):
                classes = constant(call.argument("depth", 1))
                if call.callee == "tf.one_hot" and isinstance(classes, int) and classes >= MANY_CLASSES:
                    yield self.at(call, _ONE_HOT.format(classes=classes), share=0.5, stage=stage.location)
            if not doubles:
                yield from self._doubles(pipeline)
        for call in program.calls_to("keras.utils.to_categorical") if program.runs else ():
            classes = constant(call.argument("num_classes", 1))
            if isinstance(classes, int) and classes >= MANY_CLASSES and not call.context.debug:
                yield self.at(call, _ONE_HOT.format(classes=classes), share=0.5)

    def _casts(self, pipeline: Pipeline) -> Iterator[Finding]:
        calls = list(in_order(pipeline))
        narrow = _bytes_at_source(pipeline)
        for index, (stage, call) in enumerate(calls):
            if call.callee in DECODERS:
                narrow = dtype_name(call.argument("dtype", 2)) in (None, "uint8")
            elif call.callee in RESIZES:
                size = target_size(call)
                small = size is not None and max(size) <= SMALL_EDGE
                narrow = narrow and not small and resize_method(call) in NEAREST
            elif narrow and makes_floats(call) and _of_picture(call, stage):
                later = [other for _, other in calls[index + 1 :]]
                told = _judged_by(later)
                if told is not None:
                    yield self.at(call, told, share=0.75, stage=stage.location)
                narrow = False

    def _doubles(self, pipeline: Pipeline) -> Iterator[Finding]:
        calls = [call for _, call in in_order(pipeline)]
        if any(makes_floats(call) or call.callee == "tf.saturate_cast" for call in calls):
            return
        for call in calls:
            if call.callee in PYTHON_WRAPPERS and any(map(_is_double, _parts(call.argument("Tout", 2)))):
                yield self.at(call, _DOUBLE, share=0.5)
        source = pipeline.dataset.source
        if source.op == "from_generator":
            given = (source.call.argument("output_types"), source.call.argument("output_signature"))
            if any(_is_double(part) for value in given for part in _parts(value)):
                yield self.at(source.call, _DOUBLE, share=0.5)
        elif source.op in ("from_tensor_slices", "from_tensors"):
            for part in _parts(source.call.argument("tensors")):
                made, certain = _made_double(part)
                if made is not None and (certain or _large_row(part)):
                    small = (size := size_of(part)) is not None and (size.row_bytes or SMALL_ROW) < SMALL_ROW
                    yield self.at(made, _DOUBLE, severity=Severity.HINT if small else Severity.INFO, share=0.5)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the copies to the device that nothing hides: narrower elements save `share` of them."""
        copies, share = evidence.share("host_to_device"), finding.detail.get("share")
        if evidence.environment.device.kind != "gpu" or copies is None or share is None:
            return None
        moved = evidence.copies.host_to_device_bytes if evidence.copies else 0.0
        return weigh(copies * share, "copy_share", "trace: copies to the device", Measure("copied", moved, "B"))


def _floatx(program: Program) -> Iterator[Call]:
    yield from program.calls_to("keras.backend.set_floatx")


def _bytes_at_source(pipeline: Pipeline) -> bool:
    """Say whether the elements are large pictures of bytes from the start, by the literal shape of their array."""
    source = pipeline.dataset.source
    if source.op != "from_tensor_slices":
        return False
    sizes = sizes_of(source.call.argument("tensors"))
    return any(size.width == 1 and (size.row_bytes or 0) >= SMALL_PICTURE for size in sizes)


def _of_picture(call: Call, stage: Stage) -> bool:
    """Say whether a cast is one of the picture: of what a decoder returned, or of the map's first argument."""
    if call.callee == "tf.image.convert_image_dtype":
        return True
    given = call.args[0] if call.args else None
    if any(isinstance(part, Tensor) and part.origin and part.origin.callee in DECODERS for part in walk(given)):
        return True
    function = stage.function
    text = call.node.args[0] if call.node is not None and call.node.args else None
    if not isinstance(function, Function) or not isinstance(text, ast.Name):
        return False
    activations = call.context.activations
    names = [argument.arg for argument in function.node.args.args]
    first = names[1 if function.bound is not None else 0 :][:1]
    own = bool(activations) and activations[0].function.node is function.node
    return own and first == [text.id] and not any(other.callee in DECODERS for other in stage.calls)


def _judged_by(later: list[Call]) -> str | None:
    """Return what to say of a cast by what follows: nothing where a resize or an augmentation needs floats."""
    for call in later:
        if call.callee in CROPS:
            return _BEFORE_CROP
        if call.callee in RESIZES:
            return None
        if call.callee.startswith(_MOVES) or call.callee in TRIVIAL or ":" in call.callee:
            continue
        if call.callee.startswith(("tf.", "keras.")) or not call.callee:
            return None
    return _PICTURE


def _parts(value: Value | None) -> list[Value]:
    match value:
        case None:
            return []
        case Items(items=items):
            return [part for item in items for part in _parts(item)]
        case Mapping(items=items):
            return [part for item in items.values() for part in _parts(item)]
        case _:
            return [value]


def _is_double(value: Value) -> bool:
    """Say whether `value` is the dtype float64, or the spec of a tensor of it."""
    if isinstance(value, Produced) and value.callee == "tf.TensorSpec":
        return dtype_name(value.call.argument("dtype", 1)) in ("float64", "double")
    return dtype_name(value) in ("float64", "double")


def _made_double(value: Value) -> tuple[Call | None, bool]:
    """Return the call that made `value` float64, None where none surely did, and whether its text says so."""
    match value:
        case Subscript(base=base):
            return _made_double(base)
        case Operation(operator="+" | "-" | "*" | "/", operands=(left, right)):
            found = _made_double(left)
            return found if found[0] is not None else _made_double(right)
        case Produced(call=call):
            name = call.callee
            if name.endswith(".astype") or name in ("numpy.array", "numpy.asarray"):
                said = dtype_name(call.argument("dtype", 0 if name.endswith(".astype") else 1))
                return (call, True) if said in ("float64", "double") else (None, False)
            dtype = call.argument("dtype", 1 if name in ("numpy.zeros", "numpy.ones", "numpy.empty") else None)
            if name in _DOUBLES:
                double = dtype is None or dtype_name(dtype) in ("float64", "double")
                return (call, dtype is not None) if double else (None, False)
    return None, False


def _large_row(value: Value) -> bool:
    size = size_of(value)
    return size is not None and (size.row_bytes or 0) >= SMALL_ROW
