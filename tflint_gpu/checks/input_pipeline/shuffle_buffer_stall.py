"""TFG114: a shuffle buffer that has to be filled with decoded or large elements before the first batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.sizes import WIDTHS, sizes_of
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Related, Severity
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import External, Items, Operation, Produced, Stage, Tensor, Value

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

#: Calls that turn a file's bytes into an element.
_DECODES = (
    "tf.io.decode_image",
    "tf.io.decode_jpeg",
    "tf.io.decode_png",
    "tf.io.decode_bmp",
    "tf.io.decode_gif",
    "tf.io.decode_and_crop_jpeg",
    "tf.image.decode_",
    "tf.audio.decode_wav",
)
_PYTHON_READS = ("cv2.imread", "PIL.Image.open", "librosa.load", "imageio.imread", "soundfile.read", "numpy.load")

#: After these the elements are others, or already in memory.
_SETTLES = ("cache", "batch", "padded_batch", "interleave", "flat_map", "snapshot")


#: From this share of an epoch on the wait for its first batch is a warning.
LONG = 0.10


class ShuffleBufferStall(Check):
    """A literal shuffle buffer behind a stage that decodes files, or of more bytes than a start should read."""

    needles: ClassVar[tuple[str, ...]] = ("shuffle",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield shuffles of training data that read a lot before they hand over the first element of an epoch."""
        yield from loudest(
            finding
            for pipeline in program.pipelines
            if pipeline.role == "train"
            for finding in self._shuffles(pipeline)
        )

    def _shuffles(self, pipeline: Pipeline) -> Iterator[Finding]:
        for index, stage in pipeline.stages_of("shuffle"):
            buffer = stage.call.argument("buffer_size")
            count = constant(buffer)
            if stage.call.context.debug or not (isinstance(count, int) or _whole_set(buffer)):
                continue
            decoding = _decoding_stage(pipeline.stages[:index])
            size = _element_bytes(pipeline.stages[:index])
            held = count * size if size and isinstance(count, int) else None
            if decoding and (count is None or count >= self.options["decoded-elements"]):
                files = "all files" if count is None else f"{count:,} files"
                much = f" ({held / 1e6:,.0f} MB)" if held else ""
                yield self.at(
                    stage.call,
                    f"this buffer decodes {files}{much} before the first batch of each epoch while the "
                    "GPU waits; shuffle the file names before decoding",
                    related=(Related(decoding.location, "the files are decoded here"),),
                )
            elif held and held >= self.options["bytes"] and not _starts_in_memory(pipeline.stages[:index]):
                yield self.at(
                    stage.call,
                    f"this buffer holds {held / 1e9:.1f} GB before the first batch of each epoch while the GPU "
                    "waits; shuffle indices or file names, or use a smaller buffer",
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by what the first step of an epoch takes longer than the others, of the whole epoch."""
        first, count = evidence.facts.get("epoch_start_ms"), evidence.facts.get("epoch_steps")
        step = evidence.step_ms
        if not first or not count or not step:
            return None
        refill = max(0.0, first - step)
        share = refill / (refill + count * step)
        figures = (Measure("first_step", round(first, 3), "ms"), Measure("epoch", count, "steps"))
        severity = Severity.WARNING if share >= LONG else None
        return weigh(share, "refill_share", "trace: first step of an epoch", *figures, severity=severity)


def _whole_set(buffer: Value | None) -> bool:
    """Say whether a buffer is as long as the data set: ``len(paths)``, ``ds.cardinality()``."""
    if isinstance(buffer, Operation) and buffer.operator == "len":
        return True
    made = buffer.call if isinstance(buffer, Produced) else buffer.origin if isinstance(buffer, Tensor) else None
    return made is not None and made.callee.rpartition(".")[2] == "cardinality"


def _decoding_stage(before: tuple[Stage, ...]) -> Stage | None:
    """Return the last map that decodes a file into one element, None once the elements are cached or batched."""
    found = None
    for stage in before:
        if stage.op in _SETTLES:
            found = None
        elif stage.op == "map" and any(
            call.callee.startswith((*_DECODES, *_PYTHON_READS)) for call in stage.calls
        ):
            found = stage
    return found


def _element_bytes(before: tuple[Stage, ...]) -> int | None:
    """Return the bytes of one element: what the last resize or reshape makes, or a row of a literal array."""
    if any(stage.op in (*_SETTLES, "window", "unbatch", "zip") for stage in before):
        return None
    if size := next(filter(None, (_resized(stage) for stage in reversed(before))), None):
        return size
    if any(stage.op == "map" for stage in before):
        return None
    if before[0].op != "from_tensor_slices":
        return None
    rows = [size.row_bytes or 0 for size in sizes_of(before[0].call.argument("tensors"))]
    return sum(rows) or None


def _resized(stage: Stage) -> int | None:
    """Return the bytes of what `stage` makes: a float image of a literal size, or a literal shape given last."""
    for call in reversed(stage.calls):
        if call.callee in ("tf.image.resize", "tf.image.resize_with_pad", "tf.image.resize_with_crop_or_pad"):
            size = call.argument("size", 1)
            given = size.items[:2] if isinstance(size, Items) else call.args[1:3]
            sides = [constant(side) for side in given]
            whole = [side for side in sides if isinstance(side, int)]
            if len(whole) == 2:
                return math.prod(whole) * 3 * 4
        if call.callee in ("tf.reshape", "tf.ensure_shape", "tf.Tensor.set_shape"):
            shape = call.argument("shape", 0 if call.callee.endswith("set_shape") else 1)
            dims = [constant(dim) for dim in shape.items] if isinstance(shape, Items) else _dimensions(shape)
            known = [dim for dim in dims if isinstance(dim, int) and dim > 0]
            if known and len(known) == len(dims):
                return math.prod(known) * _width(stage)
    return None


def _dimensions(shape: Value | None) -> list[object]:
    value = constant(shape)
    return list(value) if isinstance(value, (tuple, list)) else []


def _width(stage: Stage) -> int:
    """Return the bytes per number of what `stage` decodes or casts to last; one where nothing tells."""
    for call in reversed(stage.calls):
        position = {"tf.cast": 1, "tf.io.decode_raw": 1, "tf.image.convert_image_dtype": 1}.get(call.callee)
        if position is not None:
            asked = call.argument("dtype" if call.callee != "tf.io.decode_raw" else "out_type", position)
            return WIDTHS.get(
                asked.name.rpartition(".")[2] if isinstance(asked, External) else str(constant(asked)), 1
            )
    return 1


def _starts_in_memory(before: tuple[Stage, ...]) -> bool:
    """Say whether only references move: slices of an array that is in memory as a whole cost a copy, no read."""
    return len(before) == 1
