"""TFG903: validation that takes a large part of each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.loops import step_loops
from tflint_gpu.checks.sizes import rows_of
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Related
from tflint_gpu.program.values import Items, Value, constant
from tflint_gpu.program.views import Pipeline, literal

if TYPE_CHECKING:
    from tflint_gpu.program.values import Call
    from tflint_gpu.program.views import Program, TrainingRun

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
        if call.argument("validation_data") is None:
            return ""
        trained = _batches(run.pipeline, call.argument("steps_per_epoch"))
        validated = _batches(run.validation, call.argument("validation_steps"))
        if trained is None or validated is None or validated < trained * self.options["most-batches"]:
            return ""
        return f"each epoch trains {trained} batches and then validates {validated} while training waits"

    def _evaluations(self, program: Program) -> Iterator[Finding]:
        loops = step_loops(program)
        for call in program.calls_to("keras.Model.evaluate"):
            context = call.context
            inner = context.loops[:1]
            if inner and inner[0] in loops and not context.periodic and not context.guards and not context.debug:
                yield self.at(
                    call,
                    "evaluate() after every training step: the step waits for a whole pass over the test data; "
                    "evaluate once an epoch or every few hundred steps",
                )


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


def _batches(pipeline: Pipeline | None, steps: Value | None) -> int | None:
    """Return the batches of one pass: the number given, else by the rows of literal arrays."""
    if steps is not None and (isinstance(constant(steps), int) or not _is_none(steps)):
        number = literal(steps)
        return number if isinstance(number, int) else None
    batch = _batch(pipeline)
    if (
        pipeline is None
        or batch is None
        or pipeline.has("repeat", "filter", "take", "skip", "unbatch", "flat_map")
    ):
        return None
    if pipeline.dataset.source.op != "from_tensor_slices":
        return None
    tensors = pipeline.dataset.source.call.argument("tensors")
    first = tensors.items[0] if isinstance(tensors, Items) and tensors.items else tensors
    rows = rows_of(first)
    return -(-rows // batch) if rows is not None else None


def _is_none(value: Value) -> bool:
    return constant(value) is None and hasattr(value, "value")
