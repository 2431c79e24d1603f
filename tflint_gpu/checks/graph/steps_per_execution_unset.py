"""TFG605: many short steps, each started by Python on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.sizes import rows_of
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.api import BATCH_CALLBACKS
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Instance, Items, Value

if TYPE_CHECKING:
    from tflint_gpu.program.views import Model, Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: A dense layer of up to this many units computes a batch in microseconds.
SMALL = 256

#: Layers that cost next to nothing beside the dense ones.
_LIGHT = frozenset(
    f"keras.layers.{name}"
    for name in (
        "Flatten",
        "Dropout",
        "BatchNormalization",
        "Activation",
        "ReLU",
        "LeakyReLU",
        "InputLayer",
        "Reshape",
    )
) | {"keras.Input"}

#: The rows of a batch where `fit` is not told.
DEFAULT = 32
#: Larger batches fill a step by themselves.
FULL = 1024


class StepsPerExecutionUnset(Check):
    """Suggests several steps for each call from Python where the model is a few small dense layers."""

    needles = ("compile(",)
    experiments = ("steps-per-execution-8",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the compilation of small models that `fit` trains with short steps."""
        if not program.target.on_tensorflow or program.target.tensorflow < (2, 4):
            return
        for run in program.runs:
            if run.kind != "fit" or run.model is None or run.call is None or not _is_small(run.model):
                continue
            compiled = run.model.compiles[-1] if run.model.compiles else None
            if compiled is None or _is_set(compiled) or _needs_each_step(run) or run.loop is not None:
                continue
            yield self.at(
                compiled,
                "Steps of this small model are shorter than starting them from Python, and the GPU waits for each "
                "start. Try steps_per_execution=16.",
                related=(Related(run.location, "trained here"),),
                fix=self._fix(compiled, run.model, program),
            )

    def _fix(self, compiled: Call, model: Model, program: Program) -> Fix | str:
        others = [run for run in program.runs if run.model is model and run.call is not None]
        if any(run.kind != "fit" or _needs_each_step(run) for run in others):
            return "another training of this model may need each step"
        return self.change(
            "add-argument",
            compiled.location,
            "pass steps_per_execution=16",
            safety="unsafe",
            name="steps_per_execution",
            value="16",
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run with eight steps for each call."""
        return by_repair(evidence.experiment("steps-per-execution-8"), severity=Severity.WARNING)


def _is_small(model: Model) -> bool:
    """Say whether all layers are known and none does more than a small dense one."""
    dense = [layer for layer in model.layers if layer.callee == "keras.layers.Dense"]
    others = [layer for layer in model.layers if layer.callee != "keras.layers.Dense"]
    units = [constant(layer.argument("units")) for layer in dense]
    return (
        model.complete
        and bool(dense)
        and all(layer.callee in _LIGHT for layer in others)
        and all(isinstance(width, int) and width <= SMALL for width in units)
    )


def _is_set(compiled: Call) -> bool:
    return compiled.argument("steps_per_execution") is not None or bool(compiled.constant("run_eagerly"))


def _needs_each_step(run: TrainingRun) -> bool:
    """Say whether steps are long by their batch, or the only one of an epoch, or a callback may want each."""
    assert run.call is not None
    size = run.call.argument("batch_size")
    if size is not None and not (isinstance(size, Const) and isinstance(size.value, int) and size.value < FULL):
        return True
    if run.pipeline is not None or run.call.open or _one_step(run, size):
        return True
    callbacks = run.call.argument("callbacks")
    return callbacks is not None and not _quiet(callbacks)


def _one_step(run: TrainingRun, size: Value | None) -> bool:
    """Say whether one batch holds all rows: the end of an epoch comes after each step anyway."""
    rows = rows_of(run.data)
    batch = size.value if isinstance(size, Const) else DEFAULT
    return rows is not None and isinstance(batch, int) and rows <= batch


def _quiet(callbacks: Value) -> bool:
    """Say whether the callbacks are known and none of the project's works on batches."""
    if isinstance(callbacks, Const):
        return callbacks.value is None
    if not isinstance(callbacks, Items) or not callbacks.complete:
        return False
    return not any(
        isinstance(item, Instance) and any(item.cls.find(name) is not None for name in BATCH_CALLBACKS)
        for item in callbacks.items
    )
