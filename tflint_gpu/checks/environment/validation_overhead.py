"""TFG903: validation that takes a large part of each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import step_loops
from tflint_gpu.checks.sizes import rows_of
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Related
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Items, Value
from tflint_gpu.program.views import Pipeline, literal
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: Batch of validation against batch of training from which on the first is called small.
MUCH_SMALLER = 4


class ValidationOverhead(Check):
    """Validation that is larger than an epoch's training, runs in small batches, or runs in every step."""

    needles: ClassVar[tuple[str, ...]] = ("validation", "evaluate")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield fits whose validation outweighs their training by the literals, and evaluations in step loops."""
        yield from loudest((*self._fits(program), *self._evaluations(program)))

    def _fits(self, program: Program) -> Iterator[Finding]:
        for run in program.runs:
            call = run.call
            if run.kind != "fit" or call is None or call.context.debug or _now_and_then(call):
                continue
            reason = self._too_many(run, call) or _too_small(run, call)
            if reason:
                related = (Related(run.validation.location, "the validation data"),) if run.validation else ()
                yield self.at(
                    call, f"{reason}; use validation_freq, validation_steps or larger batches", related=related
                )

    def _too_many(self, run: TrainingRun, call: Call) -> str:
        """Say how many batches are validated for how many trained ones, where that is out of proportion."""
        split = literal(call.argument("validation_split"))
        if isinstance(split, float) and split >= self.options["most-rows"]:
            return f"each epoch validates on {split:.0%} of the rows while training waits"
        trained, validated = _trained(run, call), _validated(run, call)
        if trained is None or validated is None or validated < trained * self.options["most-batches"]:
            return ""
        return f"each epoch trains {trained} batches and then validates {validated} while training waits"

    def _evaluations(self, program: Program) -> Iterator[Finding]:
        loops = set(step_loops(program))
        loops |= {run.loop for run in program.runs if run.kind == "train_on_batch" and run.loop is not None}
        for call in program.calls_to("keras.Model.evaluate"):
            context = call.context
            inner = context.loops[:1]
            if inner and inner[0] in loops and not context.guards and not context.debug:
                yield self.at(
                    call,
                    "evaluate() after every training step: the step waits for a whole pass over the test data; "
                    "evaluate once an epoch or every few hundred steps",
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge a fit by the part of an epoch that validation takes, a loop by its calls of evaluate."""
        for call in evidence.keras_calls:
            if not touches(call.spot, finding.location):
                continue
            if call.method == "evaluate" and call.share is not None:
                figure = Measure("evaluate_time", round(call.ms, 3), "ms")
                return weigh(call.share, "evaluate_share", "trace: time in evaluate", figure)
            if call.method == "fit":
                return _validation(evidence)
        return None


def _validation(evidence: Evidence) -> Judgement | None:
    """Judge by the share of an epoch, validation included, that a pass over the validation data takes."""
    spent, steps, step = evidence.facts.get("validation_ms"), evidence.facts.get("epoch_steps"), evidence.step_ms
    if not isinstance(spent, int | float) or not isinstance(steps, int | float) or not steps or not step:
        return None
    share = spent / (spent + steps * step)
    figures = (Measure("validation_time", round(spent, 3), "ms"), Measure("epoch", steps, "steps"))
    return weigh(share, "validation_share", "trace: validation, of an epoch", *figures)


def _now_and_then(call: Call) -> bool:
    """Say whether validation is already left out in most epochs."""
    every = call.argument("validation_freq")
    return every is not None and constant(every) != 1


def _too_small(run: TrainingRun, call: Call) -> str:
    """Say that validation runs in batches far smaller than training, where both are literal."""
    training = _batch(run.pipeline) if run.pipeline else literal(call.argument("batch_size"))
    validation = _batch(run.validation) or literal(call.argument("validation_batch_size"))
    if not isinstance(training, int) or not isinstance(validation, int) or validation < 1:
        return ""
    if validation * MUCH_SMALLER > training:
        return ""
    return (
        f"validation runs in batches of {validation} (training: {training}), so the GPU mostly waits for launches"
    )


def _batch(pipeline: Pipeline | None) -> int | None:
    """Return the literal batch of a pipeline that batches once."""
    stages = [stage for _, stage in pipeline.stages_of("batch", "padded_batch")] if pipeline else []
    if len(stages) != 1 or stages[0].conditional:
        return None
    size = literal(stages[0].call.argument("batch_size"))
    return size if isinstance(size, int) else None


def _trained(run: TrainingRun, call: Call) -> int | None:
    """Return the batches that an epoch trains, where literals tell it."""
    steps = call.argument("steps_per_epoch")
    if steps is not None and constant(steps) is None and not _is_none(steps):
        return None
    if isinstance(constant(steps), int):
        number = literal(steps)
        return number if isinstance(number, int) else None
    if run.pipeline is not None:
        return _batches(run.pipeline)
    return _count(rows_of(_first(run.data)), call.argument("batch_size"))


def _validated(run: TrainingRun, call: Call) -> int | None:
    """Return the batches that an epoch validates, where literals tell it."""
    steps, data = call.argument("validation_steps"), call.argument("validation_data")
    if data is None or (steps is not None and constant(steps) is None and not _is_none(steps)):
        return None
    if isinstance(constant(steps), int):
        number = literal(steps)
        return number if isinstance(number, int) else None
    if run.validation is not None:
        return _batches(run.validation)
    size = call.argument("validation_batch_size")
    return _count(rows_of(_first(data)), call.argument("batch_size") if size is None else size)


def _count(rows: int | None, batch: Value | None) -> int | None:
    """Return how many batches `rows` make; Keras takes 32 where no size is given."""
    size = 32 if batch is None or _is_none(batch) else literal(batch)
    return -(-rows // size) if rows is not None and isinstance(size, int) and size > 0 else None


def _batches(pipeline: Pipeline) -> int | None:
    """Return the batches of one pass over slices of literal arrays."""
    batch = _batch(pipeline)
    if batch is None or pipeline.has("repeat", "filter", "take", "skip", "unbatch", "flat_map"):
        return None
    if pipeline.dataset.source.op != "from_tensor_slices":
        return None
    rows = rows_of(_first(pipeline.dataset.source.call.argument("tensors")))
    return -(-rows // batch) if rows is not None else None


def _first(value: Value | None) -> Value | None:
    """Return the first of several arrays."""
    return value.items[0] if isinstance(value, Items) and value.items else value


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None
