"""TFG301: a model with too little work in it to keep a GPU busy, whatever else is tuned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import inputs_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import hides_gpus
from tflint_gpu.checks.verdicts import with_larger_batch
from tflint_gpu.findings import Finding, Impact, Location, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const, Items

if TYPE_CHECKING:
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Evidence

#: Layers that hold no weights, or a handful.
_WEIGHTLESS = frozenset(
    {
        "Input",
        "InputLayer",
        "Dropout",
        "Activation",
        "ReLU",
        "LeakyReLU",
        "ELU",
        "PReLU",
        "Softmax",
        "Flatten",
        "Reshape",
        "BatchNormalization",
        "LayerNormalization",
        "Normalization",
        "Rescaling",
        "GaussianNoise",
        "Concatenate",
        "Add",
        "Multiply",
        "Average",
    }
)

#: Steps longer than this have enough work in them (ms).
SHORT_STEP = 5.0

#: A GPU that is busy for half of the step is used (ICSE'24 calls a job low at 50 %).
HALF = 0.5

#: Where one cached batch makes the step this much faster, the input is the cause and not the model.
INPUT_MATTERS = 1.15


class LightweightModel(Check):
    """A model of a few small dense layers, or a step that leaves the GPU idle although its input is free."""

    needles: ClassVar[tuple[str, ...]] = ("Dense",)
    only_on_gpu: ClassVar[str] = "how busy it is with so small a model"
    experiments: ClassVar[tuple[str, ...]] = ("batch-x2", "batch-x4")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield trained models that certainly are a few small dense layers."""
        if not program.target.on_tensorflow or hides_gpus(program):
            return
        seen = set()
        for model in program.models:
            if not model.trained or model.location in seen:
                continue
            weights = _weights(model, program, self.options["max-dense-layers"])
            if weights is not None and weights < self.options["max-parameters"]:
                seen.add(model.location)
                yield self.at(
                    model.location,
                    f"a model of about {_rounded(weights)} weights is a few microseconds of work for a GPU: "
                    "launching its kernels takes longer; use larger batches, XLA, several trials at once, or "
                    "the CPU",
                    severity=Severity.HINT,
                    qualname=model.call.qualname if model.call else "",
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Confirm it where the GPU idles although one cached batch changes nothing; refute it where it is busy."""
        busy = evidence.gpu_busy_share
        if busy is None:
            return None
        measure = Measure("gpu_busy_share", round(busy, 4))
        if busy >= HALF:
            return Judgement(Verdict.REFUTED, (measure,))
        if not _too_little_work(evidence):
            return None
        return Judgement(Verdict.CONFIRMED, (measure,), _gain(evidence))

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield the training's line where a GPU idles in short steps that neither input nor eager ops explain."""
        spot = evidence.window.spot if evidence.window else None
        busy = evidence.gpu_busy_share
        if spot is None or busy is None or busy >= HALF or not _too_little_work(evidence):
            return
        yield self.at(
            Location(spot.path, spot.line, cell=spot.cell),
            f"the GPU is busy for {busy:.0%} of a step of {evidence.step_ms:.1f} ms even with free input: "
            "the model is too small for it; use larger batches, XLA, or several trials at once",
            qualname=spot.function,
        )


def _too_little_work(evidence: Evidence) -> bool:
    """Say whether short steps leave the GPU idle although input, eager ops and compilation cost nothing."""
    free_input = evidence.experiment("cached-batch")
    return (
        evidence.step_ms is not None
        and evidence.step_ms < SHORT_STEP
        and free_input is not None
        and free_input.low < INPUT_MATTERS
        and (evidence.eager is None or evidence.eager.share < 0.1)
        and (evidence.share("compile") or 0.0) < 0.1
    )


def _gain(evidence: Evidence) -> Impact | None:
    """Return what a larger batch gives back, where one was tried."""
    larger = with_larger_batch(evidence)
    if larger is None or not larger.gain:
        return None
    return Impact(round(larger.saved_share, 4), larger.basis)


def _weights(model: Model, program: Program, most_layers: int) -> int | None:
    """Return an upper bound of the weights of a model of dense layers alone; None where it is anything else."""
    if not model.complete:
        return None
    inputs = sum(map(_input_width, inputs_of(model, program) or model.layers[:1]))
    dense = [call for call in model.layers if call.callee == "keras.layers.Dense"]
    others = [call for call in model.layers if call.callee != "keras.layers.Dense"]
    if not inputs or not 1 <= len(dense) <= most_layers or any(_name(call) not in _WEIGHTLESS for call in others):
        return None
    units = [call.constant("units") for call in dense]
    if not all(isinstance(unit, int) for unit in units):
        return None
    total, width = 0, inputs
    for unit in units:
        total += unit * (width + 1)
        # A functional model may join branches: what a layer sees is at most all that came before it.
        width = unit if model.kind == "sequential" else width + unit
    return total


def _input_width(call: Call) -> int:
    """Return how many numbers a sample has, by an input layer or ``input_shape``; 0 if unknown."""
    if call.callee in ("keras.Input", "keras.layers.InputLayer"):
        shape = call.argument("shape", 0) or call.argument("input_shape")
    else:
        shape = call.kwargs.get("input_shape") or call.kwargs.get("input_dim")
    sizes = shape.items if isinstance(shape, Items) and shape.complete else (shape,)
    width = 1
    for size in sizes:
        if not (isinstance(size, Const) and isinstance(size.value, int)):
            return 0
        width *= size.value
    return width


def _name(call: Call) -> str:
    return call.callee.rpartition(".")[2]


def _rounded(number: int) -> str:
    """Return `number` in two leading digits: 4100 for 4097."""
    scale = 10 ** max(0, len(str(number)) - 2)
    return f"{round(number / scale) * scale:,}"
