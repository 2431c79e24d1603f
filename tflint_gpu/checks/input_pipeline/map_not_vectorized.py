"""TFG111: a map of cheap ops that runs once an element and could run once a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import ALL_MAPS, judge_input, part_of, stages_of
from tflint_gpu.checks.pipelines import training_pipelines
from tflint_gpu.findings import Finding, Fix, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Function, GraphFunction, Partial, Stage

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

#: Parsers that take a batch as well as one element, with what to call on batches.
_PARSERS = {
    "tf.io.decode_csv": "tf.io.decode_csv",
    "tf.io.parse_single_example": "tf.io.parse_example",
    "tf.io.decode_raw": "tf.io.decode_raw",
    "tf.strings.to_number": "tf.strings.to_number",
    "tf.strings.split": "tf.strings.split",
    "tf.strings.lower": "tf.strings.lower",
    "tf.strings.regex_replace": "tf.strings.regex_replace",
}

#: Ops that mean the same on a batch as on each of its elements, or do after a word about the axis.
_ELEMENTWISE = frozenset(
    f"tf.{name}"
    for name in (
        "cast", "one_hot", "stack", "divide", "multiply", "subtract", "add", "abs", "square", "sqrt", "exp",
        "clip_by_value", "equal", "constant", "convert_to_tensor", "identity", "zeros_like", "ones_like",
        "math.log", "math.log1p", "math.divide", "math.multiply", "math.subtract", "math.add", "math.exp",
        "math.sqrt", "math.square", "image.convert_image_dtype",
    )
)  # fmt: skip

#: Those among them that know no axis.
_ANY_RANK = _ELEMENTWISE - {"tf.one_hot", "tf.stack", "tf.constant"}

#: Between a map and its batch these leave what the map made as it is.
_BETWEEN = ("shuffle", "repeat", "take", "skip", "prefetch", "cache")


class MapNotVectorized(Check):
    """Suggests batching before a map whose ops all work on whole batches."""

    needles = (".map(",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield maps of text and records at full voice, of arithmetic at hint level."""
        for pipeline in training_pipelines(program):
            for index, stage in pipeline.stages_of("map"):
                if not _then_batched(pipeline, index) or stage.conditional:
                    continue
                # Calls of the project's own functions are followed: what counts is what they call.
                work = [call for call in stage.calls if ":" not in call.callee]
                if not work or not all(_on_batches(call) for call in work) or not _is_plain(stage):
                    continue
                parser = next((call.callee for call in work if call.callee in _PARSERS), None)
                does = f"{_PARSERS[parser]} takes a whole batch" if parser else "its ops take whole batches"
                yield self.at(
                    stage.call,
                    f"This map runs once for every element, and {does}: calling it costs more than its work while "
                    "the GPU waits. Batch first, then map.",
                    severity=self.severity if parser else Severity.HINT,
                    fix=self._batch_first(pipeline, index, stage, work),
                )

    def _batch_first(self, pipeline: Pipeline, index: int, stage: Stage, work: list[Call]) -> Fix | str:
        """Return the fix that lets map and batch change places, where the function says the same of a batch."""
        batch = pipeline.stages[index + 1]
        if batch.op != "batch" or batch.location.path != stage.location.path:
            return "other stages stand between map and batch"
        if any(call.callee not in _ANY_RANK for call in work) or _picks(stage):
            return "the function has to be read for axes and ranks first"
        return self.change(
            "swap-methods", batch.location, "batch first, then map", safety="unsafe", places=(stage.location,)
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by this map's part of what input costs."""
        part = part_of(stages_of(finding, evidence, ALL_MAPS), evidence)
        return None if part is None else judge_input(evidence, part)


def _then_batched(pipeline: Pipeline, index: int) -> bool:
    """Say whether elements come one by one up to the map at `index`, and a plain batch follows it."""
    before, after = pipeline.stages[:index], pipeline.stages[index + 1 :]
    if any("batch" in stage.op or "dataset_from" in stage.op or stage.op == "window" for stage in before):
        return False
    for stage in after:
        if stage.op == "batch":
            return not stage.conditional
        if stage.op not in _BETWEEN:
            return False
    return False


def _picks(stage: Stage) -> bool:
    """Say whether the text of the function picks elements by index, which means another axis in a batch."""
    function = stage.function
    if not isinstance(function, Function):
        return True
    return any(isinstance(part, ast.Subscript) for part in ast.walk(function.node))


def _on_batches(call: Call) -> bool:
    return call.callee in _PARSERS or call.callee in _ELEMENTWISE


def _is_plain(stage: Stage) -> bool:
    """Say whether the function can be read: one of the project's, without loops or branches of its own."""
    function = stage.function
    if isinstance(function, GraphFunction | Partial):
        function = function.function
    return isinstance(function, Function) and not any(
        call.context.loops or call.context.guards for call in stage.calls
    )
