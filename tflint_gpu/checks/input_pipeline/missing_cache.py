"""TFG108: decoding or parsing that is done again in every epoch and gives the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import ALL_MAPS, HIDDEN, judge_input, judge_repair, part_of, stages_of
from tflint_gpu.checks.map_functions import PYTHON_WRAPPERS, is_random, stateful_cause
from tflint_gpu.checks.pipelines import training_pipelines
from tflint_gpu.findings import Finding, Related, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const, Function, GraphFunction, Partial, Stage

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline, Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: Calls that take long enough for each element to be worth keeping their result.
_EXPENSIVE = (
    "tf.io.decode_", "tf.image.decode_", "tf.io.parse_", "tf.image.resize", "tf.audio.decode", "tf.io.read_file",
    "tf.signal.", "tf.strings.", "tf.io.decode", "keras.layers.TextVectorization", "tensorflow_text.",
)  # fmt: skip
_DECODERS = ("tf.io.decode_jpeg", "tf.io.decode_png", "tf.io.decode_image", "tf.image.decode_jpeg",
             "tf.image.decode_png", "tf.image.decode_image")  # fmt: skip
_CROPS = ("tf.image.random_crop", "tf.image.stateless_random_crop")
_KEEPING = ("cache", "snapshot", "save", "load")

#: Sources that keep small data sets in memory by themselves, or are never the same twice.
_OTHER_SOURCES = ("tfds", "from_generator", "random", "load")


class MissingCache(Check):
    """Suggests a cache after the last deterministic, expensive map of a pipeline that several epochs run."""

    needles = ("Dataset",)
    experiments = ("cache",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a pipeline: at the map after which a cache belongs, or at a decoder before a crop."""
        repeated = {id(run.pipeline.dataset) for run in program.runs if run.pipeline and _many_epochs(run)}
        for pipeline in training_pipelines(program):
            if pipeline.dataset.source.op in _OTHER_SOURCES or pipeline.has(*_KEEPING):
                continue
            if id(pipeline.dataset) in repeated and (stage := _last_deterministic(pipeline)) is not None:
                yield self.at(
                    stage.call,
                    "Every epoch does this work again with the same result, and the GPU may wait for it. "
                    "If the result fits, add .cache() after it, before shuffle and augmentation.",
                    fix=self.change(
                        "append-method",
                        stage.location,
                        "append .cache(), which keeps the result in memory",
                        safety="unsafe",
                        method="cache",
                    ),
                )
            elif (decoder := _decoded_to_crop(pipeline)) is not None:
                call, stage = decoder
                yield self.at(
                    call,
                    "Each pass decodes the whole picture to crop a part, and the GPU may wait for it. "
                    "Cache decoded pictures before the crop, or use tf.image.decode_and_crop_jpeg.",
                    related=(Related(stage.location, "in this map"),),
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run with a cache, else by this map's part of what input costs."""
        judged = judge_repair("cache", evidence, severity=Severity.WARNING, unsettled=HIDDEN)
        if judged is not None:
            return judged
        part = part_of(stages_of(finding, evidence, ALL_MAPS), evidence)
        return None if part is None else judge_input(evidence, part)


def _many_epochs(run: TrainingRun) -> bool:
    """Say whether the training surely reads its data more than once."""
    if run.kind == "fit" and run.call is not None:
        epochs = run.call.argument("epochs")
        return isinstance(epochs, Const) and isinstance(epochs.value, int) and epochs.value > 1
    if run.loop is None:
        return False
    loops = run.context.all_loops
    outer = loops[loops.index(run.loop) + 1 :] if run.loop in loops else ()
    return any(loop.kind == "for" and (loop.count is None or loop.count > 1) for loop in outer[:1])


def _last_deterministic(pipeline: Pipeline) -> Stage | None:
    """Return the last map that gives the same in every epoch, if one up to there is expensive."""
    last, expensive = None, False
    for stage in pipeline.stages:
        if stage.op in ("interleave", "flat_map", "unbatch"):
            break
        if stage.op != "map":
            continue
        if (
            stage.conditional
            or not isinstance(stage.function, Function | GraphFunction | Partial)
            or _changes(stage)
        ):
            break
        expensive = expensive or any(_is_expensive(call) for call in stage.calls)
        last = stage
    return last if expensive else None


def _changes(stage: Stage) -> bool:
    """Say whether the map may give another result next time: random numbers, or code that cannot be read."""
    cause = stateful_cause(stage)
    drawn = any(is_random(call, stateless_too=True) for call in stage.calls)
    unknown = any(not call.callee for call in stage.calls)
    python = any(call.callee.partition(".")[0] in ("random", "albumentations", "imgaug") for call in stage.calls)
    numpy = any(call.callee.startswith("numpy.random") for call in stage.calls)
    return drawn or unknown or python or numpy or (cause is not None and cause.kind == "random")


def _is_expensive(call: Call) -> bool:
    return call.callee in PYTHON_WRAPPERS or call.callee.startswith(_EXPENSIVE)


def _decoded_to_crop(pipeline: Pipeline) -> tuple[Call, Stage] | None:
    """Return the decoder in a map that goes on to crop at random what it decoded whole, and that map."""
    for stage in pipeline.stages_of("map"):
        decoded: Call | None = None
        for call in stage[1].calls:
            if call.callee in _DECODERS:
                decoded = call
            elif call.callee.startswith("tf.image.resize") or call.callee == "tf.io.read_file":
                break
            elif call.callee in _CROPS and decoded is not None:
                return decoded, stage[1]
    return None
