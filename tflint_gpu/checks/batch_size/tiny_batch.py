"""TFG201: a batch too small to keep a GPU busy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tflint_gpu.checks.architecture import inputs_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import image_flow, is_python_input
from tflint_gpu.checks.loops import adapts, drives_environment
from tflint_gpu.checks.pipelines import batch_in_force
from tflint_gpu.checks.rows import one_row
from tflint_gpu.checks.verdicts import by_repair, with_larger_batch
from tflint_gpu.findings import Finding, Location, Measure, Severity, Verdict
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import (
    Attribute,
    Const,
    Dataset,
    Element,
    Generator,
    Instance,
    Items,
    Produced,
    Subscript,
    Tensor,
    Unknown,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: What Keras takes where nobody says.
KERAS_DEFAULT = 32
#: A GPU that is busier than this has work enough, whatever the batch.
BUSY = 0.8
#: Throughput has to rise by this factor before a larger batch is worth its learning-rate search.
WORTHWHILE = 1.2

_LITERAL = "A batch of {size} makes tiny kernels: the GPU mostly waits for the next launch. Try {advice}."
_DEFAULT = "Keras' default batch of 32 on a small dense net leaves the GPU idle between launches. Try 256."

#: Layers of nets that are dense and nothing else.
_DENSE = frozenset(
    {
        *("Dense", "Dropout", "BatchNormalization", "LayerNormalization", "Normalization", "Flatten"),
        *("Activation", "ReLU", "LeakyReLU", "ELU", "PReLU", "Softmax", "Input", "InputLayer", "Rescaling"),
        *("Concatenate", "Add", "GaussianNoise", "AlphaDropout", "Reshape", "UnitNormalization"),
        *("CategoryEncoding", "Discretization"),
    }
)
#: Parts of the names of layers whose samples are work enough by themselves.
_HEAVY = (
    "3D",
    "Transpose",
    "UpSampling",
    "Attention",
    "LSTM",
    "GRU",
    "RNN",
    "Bidirection",
    "Transformer",
    "Conv1D",
)
#: Input of this many pixels and more fills a GPU with few images.
_LARGE_IMAGE = 384 * 384
#: Rows that somebody typed in to show something.
_TOY_ROWS = 32

#: Lists in lists and views of views that are looked into; a list may hold itself.
_NESTED = 8

#: Numbers counted by ``range`` up to this are an illustration too.
_COUNTED = 101
_CONSTANTS = ("tf.constant", "tf.convert_to_tensor")
#: A dense layer of more units than this has work of its own.
_WIDE = 256


@dataclass(frozen=True, slots=True)
class _Batch:
    """The batch of a run: its size, where it is set, whether a user may set it anew, whether nobody set it."""

    size: int
    place: Location
    qualname: str
    soft: bool = False
    default: bool = False


class TinyBatch(Check):
    """A literal batch that a GPU cannot fill its multiprocessors with."""

    needles = ("batch", ".fit(", ".flow", "from_directory")
    experiments = ("batch-x2", "batch-x4", "batch-x8", "batch-x16")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the batch of every training run that is small for the kind of model."""
        for run in program.runs:
            if run.strategy is None and not run.context.debug and not _deliberate(run):
                batch = _batch_of(run)
                if batch is not None:
                    yield from self._judged_small(run, batch, program)

    def _judged_small(self, run: TrainingRun, batch: _Batch, program: Program) -> Iterator[Finding]:
        family = _family(run.model, program)
        limit = self.options["tabular" if family == "dense" else "vision"]
        if batch.size <= limit:
            advice = f"{8 * limit} or more"
            certain = family in ("dense", "vision") and not batch.soft
            yield self.at(
                batch.place,
                _LITERAL.format(size=batch.size, advice=advice),
                severity=Severity.WARNING if certain else Severity.INFO,
                qualname=batch.qualname,
            )
        elif batch.default and family == "dense" and _is_small(run.model) and not run.context.loops:
            yield self.at(batch.place, _DEFAULT, severity=Severity.INFO, qualname=batch.qualname)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Larger batches in the same run decide: samples per second must rise by a fifth."""
        busy = evidence.gpu_busy_share
        if busy is not None and busy > BUSY:
            return Judgement(Verdict.REFUTED, (Measure("gpu_busy_share", round(busy, 4)),))
        result = with_larger_batch(evidence)
        judged = by_repair(result)
        if judged is None or result is None:
            return None
        if judged.verdict is Verdict.CONFIRMED and result.speedup >= WORTHWHILE:
            return judged
        # Batches that a CPU computes no faster may well fill a GPU better.
        if evidence.environment.device.kind != "gpu":
            reason = "larger batches gain little on this CPU, and may still fill a GPU better"
            return Judgement(Verdict.UNMEASURED, judged.measures, reason=reason)
        gained = judged.verdict in (Verdict.CONFIRMED, Verdict.MINOR)
        return Judgement(Verdict.MINOR, judged.measures) if gained else judged


def _batch_of(run: TrainingRun) -> _Batch | None:
    if run.pipeline is not None:
        found = batch_in_force(run.pipeline.dataset)
        if found is None or _toy(run.pipeline.dataset.source.call.argument("tensors", 0)):
            return None
        stage, size = found
        return _sized(stage.call, size, "batch_size", default=isinstance(size, int))
    flow = image_flow(run.data)
    if flow is not None:
        given = flow.argument("batch_size", 1 if flow.callee.endswith(".flow") else None)
        return _sized(flow, KERAS_DEFAULT if given is None else given, "batch_size")
    if run.kind != "fit" or run.call is None or isinstance(run.data, Dataset):
        return None
    if is_python_input(run.data):
        return _told(run, run.call)
    if one_row(run.data) or _toy(run.data):
        return None
    given = run.call.argument("batch_size")
    if given is None or (isinstance(given, Const) and given.value is None):
        # Data of unknown kind may be a dataset; targets of their own come with arrays only.
        arrays = run.call.argument("y") is not None and not isinstance(run.data, Unknown)
        return _sized(run.call, KERAS_DEFAULT, "batch_size", default=True) if arrays else None
    sized = _sized(run.call, given, "batch_size")
    # Data without targets may be a dataset of unknown making, which does not read the argument.
    doubtful = run.call.argument("y") is None
    return replace(sized, soft=True) if sized and doubtful else sized


def _told(run: TrainingRun, fit: Call) -> _Batch | None:
    """Return the batch that a generator or PyDataset is told to make, by an argument of that name."""
    if isinstance(run.data, Instance) and run.data.call is not None:
        given = run.data.call.argument("batch_size")
        found = _sized(run.data.call, given, "batch_size") if given is not None else None
    elif isinstance(run.data, Generator):
        given = run.data.state.names.get("batch_size")
        found = _sized(fit, given, "x") if isinstance(given, Const) else None
    else:
        return None
    # Whether the argument is all there is to it, only its body can say.
    return replace(found, soft=True) if found else None


def _toy(data: Value | None) -> bool:
    """Say whether the data are a few rows by the code's own word: an illustration, not a training set."""
    while isinstance(data, Items) and data.kind == "tuple" and data.items:
        data = data.items[0]
    if _spelled_out(data):
        return True
    if isinstance(data, Produced) and data.callee in ("numpy.array", "numpy.asarray") and data.call.args:
        data = data.call.args[0]
    if (
        isinstance(data, Tensor)
        and data.origin is not None
        and data.origin.callee in _CONSTANTS
        and data.origin.args
    ):
        data = data.origin.args[0]
    if isinstance(data, Produced) and data.callee.startswith("numpy."):
        shape = next((value for value in (*data.call.kwargs.values(), *data.call.args) if _is_shape(value)), None)
        rows = constant(shape.items[0]) if isinstance(shape, Items) else None
        return isinstance(rows, int) and rows <= _TOY_ROWS // 2
    return isinstance(data, Items) and data.kind == "list" and data.complete and len(data.items) <= _TOY_ROWS


#: What rearranges an array, given first or called on it.
_REARRANGES = ("array", "asarray", "transpose", "reshape", "expand_dims", "astype", "train_test_split")


def _spelled_out(data: Value | None, depth: int = 0) -> bool:
    """Say whether every number of `data` stands in the code itself, or counts up to a hundred."""
    if depth > _NESTED:
        return False
    match data:
        case Items(kind="list", items=items, complete=True):
            return bool(items) and all(isinstance(item, Const) or _spelled_out(item, depth + 1) for item in items)
        case Produced(callee="builtins.range", call=call):
            counts = [constant(argument) for argument in call.args]
            return all(isinstance(count, int) and abs(count) <= _COUNTED for count in counts)
        case Produced(callee="numpy.arange", call=call):
            return len(call.args) == 1 and isinstance(count := constant(call.args[0]), int) and count <= _COUNTED
        case Produced(callee=callee, call=call) if callee.rpartition(".")[2] in _REARRANGES:
            given = call.args[0] if callee.startswith(("numpy.", "sklearn.")) and call.args else call.receiver
            return _spelled_out(given, depth + 1)
        case Subscript(base=base) | Element(source=base) | Attribute(base=base, name="T"):
            return _spelled_out(base, depth + 1)
        case _:
            return False


def _is_shape(value: Value) -> bool:
    return isinstance(value, Items) and value.kind == "tuple" and value.complete and bool(value.items)


def _sized(call: Call, size: Value | int, argument: str, *, default: bool = False) -> _Batch | None:
    number = size if isinstance(size, int) else constant(size)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return None
    soft = isinstance(size, Const) and size.soft
    return _Batch(number, call.place_of(argument), call.qualname, soft, default)


def _deliberate(run: TrainingRun) -> bool:
    """Say whether the batch is small for a reason: simulated worlds, meta-learning, gradients that accumulate."""
    if run.loop is not None and (drives_environment(run.loop) or adapts(run.loop)):
        return True
    if any(drives_environment(loop) for loop in run.context.all_loops):
        return True
    if run.loop is not None and any(_applies_now_and_then(call) for call in run.loop.calls):
        return True
    return run.model is not None and any(_accumulates(call) for call in run.model.compiles)


def _applies_now_and_then(call: Call) -> bool:
    """Say whether gradients are applied every so many batches only: they add up in between."""
    applies = call.callee.endswith((".apply_gradients", ".apply"))
    return applies and any(guard.kind == "periodic" and not guard.negated for guard in call.context.all_guards)


def _accumulates(compiling: Call) -> bool:
    optimizer = compiling.argument("optimizer")
    return isinstance(optimizer, Produced) and optimizer.call.argument("gradient_accumulation_steps") is not None


def _layer_names(model: Model) -> list[str]:
    return [layer.callee.rpartition(".")[2] for layer in model.layers]


def _family(model: Model | None, program: Program) -> str:
    """Return ``dense`` or ``vision`` for nets that are surely plain classifiers or regressors, else ``other``."""
    if model is None:
        return "other"
    names = _layer_names(model)
    if model.complete and names and all(name in _DENSE for name in names):
        return "dense"
    applications = model.kind == "application" or any(
        layer.callee.startswith("keras.applications.") for layer in model.layers
    )
    convolutions = applications or any(name.startswith(("Conv2D", "SeparableConv2D")) for name in names)
    if not convolutions or any(part in name for name in names for part in _HEAVY):
        return "other"
    classifies = "Dense" in names or (model.kind == "application" and not names)
    return "vision" if classifies and not _large_images(model, program) else "other"


def _large_images(model: Model, program: Program) -> bool:
    shapes = [call.argument("shape", 0) for call in inputs_of(model, program)]
    shapes += [layer.argument("input_shape") for layer in model.layers]
    return any(_pixels(shape) >= _LARGE_IMAGE for shape in shapes)


def _pixels(shape: Value | None) -> int:
    """Return height times width of a literal image shape, 0 where it is none."""
    if not isinstance(shape, Items) or len(shape.items) != 3:
        return 0
    height, width = (constant(side) for side in shape.items[:2])
    return height * width if isinstance(height, int) and isinstance(width, int) else 0


def _is_small(model: Model | None) -> bool:
    if model is None:
        return False
    units = [layer.constant("units") for layer in model.layers if layer.callee == "keras.layers.Dense"]
    return bool(units) and all(isinstance(unit, int) and unit <= _WIDE for unit in units)
