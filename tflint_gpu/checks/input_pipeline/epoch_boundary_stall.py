"""TFG154: epochs so short, or boundaries so long, that the GPU mostly waits between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.sizes import rows_of
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import place_of, weigh
from tflint_gpu.findings import Finding, Impact, Measure, Verdict
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Attribute, Const, Items, Operation, Subscript, Value
from tflint_gpu.program.views import literal
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: Steps an epoch that do not outweigh what Keras does around it.
FEW_STEPS = 2

#: Epochs from which on their boundaries add up to something.
MANY_EPOCHS = 10

#: Shorter epochs are taken for a trial run, where boundaries look huge.
A_REAL_EPOCH = 50

#: From this share of an epoch on a boundary is worth a word.
BOUNDARY_SHARE = 0.10

#: Stages behind which there are as many elements as before.
_SAME_LENGTH = ("prefetch", "cache", "map", "shuffle")

_SHORT = (
    "{epochs} epochs of {steps}: new iterators, callbacks and logs around each leave the GPU idle. Repeat the "
    "data and make one epoch of many steps."
)


class EpochBoundaryStall(Check):
    """Epochs of one or two steps in the code, and long pauses between epochs in a trace."""

    needles: ClassVar[tuple[str, ...]] = ("epochs",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield fits whose epochs are surely of one or two steps, where there are many of them."""
        yield from loudest(
            self.at(run.call, _SHORT.format(epochs=f"{epochs:,}", steps=steps))
            for run in program.runs
            if run.kind == "fit" and run.call is not None and not run.call.context.debug
            if (epochs := _epochs(run.call)) >= MANY_EPOCHS and (steps := _steps(run, run.call))
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the pause between two epochs against an epoch with its pause."""
        share = boundary_share(evidence)
        fitted = any(
            call.method.startswith("fit") and touches(call.spot, finding.location) for call in evidence.keras_calls
        )
        if share is None or not fitted:
            return None
        return weigh(share, "boundary_share", "trace: pauses between epochs", *_figures(evidence))

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where epochs of 50 steps and more spend a tenth of their time at the boundary."""
        share, steps, pause = boundary_share(evidence), _steps_seen(evidence), pause_ms(evidence)
        if share is None or pause is None or steps < A_REAL_EPOCH or share < BOUNDARY_SHARE:
            return
        found = self.at(
            place_of(evidence),
            f"Between two epochs of {steps:.0f} steps the GPU idles {pause:,.0f} ms: look at "
            "validation, saving, callbacks and the shuffle buffer; validate and save less often.",
        )
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=_figures(evidence),
            impact=Impact(round(share, 4), "trace: pauses between epochs"),
        )


def pause_ms(evidence: Evidence) -> float | None:
    """Return the milliseconds between the last step of an epoch and the next epoch's first; None where not seen.

    In loops of one's own the pause is what the first step of an epoch takes longer than others.
    """
    gap, first = evidence.facts.get("epoch_gap_ms"), evidence.facts.get("epoch_start_ms")
    if isinstance(gap, int | float):
        return float(gap)
    if isinstance(first, int | float) and evidence.step_ms:
        return max(0.0, float(first) - evidence.step_ms)
    return None


def boundary_share(evidence: Evidence) -> float | None:
    """Return the share of an epoch that its boundary takes, pause included; None where no boundary was seen."""
    pause, steps = pause_ms(evidence), _steps_seen(evidence)
    if pause is None or not steps or not evidence.step_ms:
        return None
    return pause / (pause + steps * evidence.step_ms)


def _steps_seen(evidence: Evidence) -> float:
    steps = evidence.facts.get("epoch_steps")
    return float(steps) if isinstance(steps, int | float) else 0.0


def _figures(evidence: Evidence) -> tuple[Measure, ...]:
    return (
        Measure("epoch_pause", round(pause_ms(evidence) or 0.0, 3), "ms"),
        Measure("epoch_steps", _steps_seen(evidence)),
    )


def _epochs(fit: Call) -> int:
    epochs = literal(fit.argument("epochs"))
    return epochs if isinstance(epochs, int) else 0


def _steps(run: TrainingRun, fit: Call) -> str:
    """Say how few steps an epoch surely has, "" where it may have more."""
    steps = fit.argument("steps_per_epoch")
    if steps is not None and not (isinstance(steps, Const) and steps.value is None):
        count = literal(steps)
        few = isinstance(count, int) and 0 < count <= FEW_STEPS
        return ("one step" if count == 1 else "two steps") if few else ""
    if run.pipeline is not None:
        stages = [stage for stage in run.pipeline.stages if stage.op not in _SAME_LENGTH]
        ops = [stage.op for stage in stages]
        if any(stage.conditional for stage in stages):
            return ""
        if ops == ["from_tensors"]:
            return "one step"
        size = stages[-1].call.argument("batch_size") if ops == ["from_tensor_slices", "batch"] else None
        return "one step" if size and _whole(size, stages[0].call.argument("tensors")) else ""
    size = fit.argument("batch_size")
    return "one step" if size is not None and _whole(size, run.data) else ""


def _whole(size: Value, data: Value | None) -> bool:
    """Say whether a batch surely holds all rows: by literal sizes, or as ``len(x)`` or ``x.shape[0]``."""
    count, rows = constant(size), rows_of(data)
    if isinstance(count, int) and rows is not None:
        return rows <= count
    parts = data.items if isinstance(data, Items) else (data,)
    match size:
        case Operation(operator="len", operands=(inner,)):
            return any(inner is part for part in parts)
        case Subscript(base=Attribute(base=base, name="shape"), key=Const(value=0)):
            return any(base is part for part in parts)
        case _:
            return False
