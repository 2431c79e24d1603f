"""TFG117: pictures decoded, cut or resized in a way that takes longer than it has to."""

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
    in_order,
    resize_method,
    target_size,
)
from tflint_gpu.checks.input_costs import judge_map
from tflint_gpu.checks.map_functions import called_layers
from tflint_gpu.checks.pipelines import runs_once
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Related, Severity
from tflint_gpu.program.questions import is_true, walk
from tflint_gpu.program.values import Function, Tensor

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

_JPEG = tuple(f"tf.{room}.decode_jpeg" for room in ("io", "image"))
_ANY = tuple(f"tf.{room}.decode_image" for room in ("io", "image"))

#: The cuts that `decode_and_crop_jpeg` can make while it decodes; a random one is missing-cache's matter.
_FIXED_CROPS = CROPS - {"tf.image.random_crop", "tf.image.stateless_random_crop"}

#: Beyond this edge a picture may well be as large as the file's.
SMALL_EDGE = 256

_CROPPED = (
    "The whole picture is decoded and then cropped, so batches are late for the GPU. tf.io.decode_and_crop_jpeg "
    "decodes the part alone."
)
_SHAPELESS = (
    "decode_image returns no static shape and looks for GIFs each time; batches come a little later for the GPU. "
    "Use decode_jpeg or decode_png."
)
_RATIO = (
    "decode_jpeg decodes at full size what is then scaled down to {height}x{width}. ratio=2, 4 or 8 decodes "
    "smaller, so the GPU waits less."
)
_FILTER = "{what} takes several times as long as plain bilinear for each picture, and the GPU may wait for it."
_TWICE = "This resizes what was resized before: twice the work for each picture, and the GPU may wait. Keep one."


class ImageDecodeSlow(Check):
    """Reports decoding and resizing in maps of training data that cheaper calls would replace."""

    needles: ClassVar[tuple[str, ...]] = ("decode_", "resize", "Resizing")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield calls inside maps of training data; what a cache keeps is done once and left alone."""
        yield from loudest(
            finding
            for pipeline in program.pipelines
            if pipeline.role == "train"
            for finding in (*self._decoding(pipeline), *self._resizing(pipeline))
        )

    def _decoding(self, pipeline: Pipeline) -> Iterator[Finding]:
        calls = [(stage, call) for stage, call in in_order(pipeline) if not runs_once(pipeline.dataset, stage)]
        for index, (stage, call) in enumerate(calls):
            if call.callee in _ANY:
                yield self._at(call, stage, _SHAPELESS, Severity.HINT)
            if call.callee not in _JPEG:
                continue
            user = next((later for _, later in calls[index + 1 :] if _uses(later, call)), None)
            if user is None:
                continue
            size = target_size(user) if user.callee in RESIZES else None
            if user.callee in _FIXED_CROPS:
                yield self._at(call, stage, _CROPPED, Severity.INFO)
            elif size and max(size) <= SMALL_EDGE and call.argument("ratio", 2) is None:
                message = _RATIO.format(height=size[0], width=size[1])
                yield self._at(call, stage, message, Severity.HINT)

    def _resizing(self, pipeline: Pipeline) -> Iterator[Finding]:
        sized: Call | None = None
        source = pipeline.dataset.source
        if source.op == "image_dataset_from_directory":
            sized = source.call
        for stage, call in in_order(pipeline):
            if call.callee in CROPS or call.callee.startswith("tf.image.resize_with_crop"):
                sized = None
            if not _resizes(call):
                continue
            first = sized if sized is source.call else _resized_before(call)
            if first is not None and first is source.call and not _takes_it_once(stage):
                continue
            if first is not None and not call.context.guards and not stage.conditional:
                yield self._at(call, stage, _TWICE, Severity.INFO, first)
            elif slow := _slow_filter(call):
                yield self._at(call, stage, _FILTER.format(what=slow), Severity.HINT)

    def _at(
        self, call: Call, stage: Stage, message: str, severity: Severity, first: Call | None = None
    ) -> Finding:
        related = (Related(first.location, "resized here before"),) if first else ()
        return self.at(call, message, severity=severity, related=related, stage=stage.location)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the part of the input's cost that the map takes which holds the call: an upper bound."""
        return judge_map(finding, evidence)


def _uses(call: Call, made: Call) -> bool:
    """Say whether `call` is the picture's next crop or resize: an op on what `made` returned, casts between."""
    if call.callee not in CROPS | RESIZES or not call.args:
        return False
    return any(isinstance(part, Tensor) and part.origin is made for part in walk(call.args[0]))


def _resizes(call: Call) -> bool:
    return call.callee in RESIZES or any(layer.callee == "keras.layers.Resizing" for layer in called_layers(call))


def _resized_before(call: Call) -> Call | None:
    """Return the resize whose result `call` resizes again, None where something cuts or pads in between."""
    for part in walk(call.args[0]) if call.args and _overwrites(call) else ():
        if isinstance(part, Tensor) and part.origin is not None:
            if part.origin.callee in RESIZES:
                return None if part.origin.context.guards else part.origin
            if part.origin.callee in CROPS | DECODERS or "pad" in part.origin.callee:
                return None
    return None


def _takes_it_once(stage: Stage) -> bool:
    """Say whether a map has but one use for its first argument: a smaller copy beside a picture is no waste."""
    function = stage.function
    if not isinstance(function, Function):
        return False
    names = [argument.arg for argument in function.node.args.args][1 if function.bound is not None else 0 :]
    used = [part.id for part in ast.walk(function.node) if isinstance(part, ast.Name)]
    return bool(names) and used.count(names[0]) == 1


def _overwrites(call: Call) -> bool:
    """Say whether the result of `call` takes the place of what it was given, so that this is of no further use."""
    given = call.node.args[0] if call.node is not None and call.node.args else None
    if isinstance(given, ast.Call):
        return True
    around = next(iter(call.context.activations), None)
    if around is None or not isinstance(given, ast.Name):
        return False
    return any(
        isinstance(part, ast.Assign)
        and part.value is call.node
        and any(isinstance(target, ast.Name) and target.id == given.id for target in part.targets)
        for part in ast.walk(around.function.node)
    )


def _slow_filter(call: Call) -> str | None:
    """Return what makes a resize slow: antialiasing, or a filter over many pixels."""
    if call.callee not in RESIZES:
        return None
    if is_true(call.argument("antialias")):
        return "antialias=True"
    method = resize_method(call)
    if method is None or method in ("bilinear", *NEAREST):
        return None
    return f'method="{method}"'
