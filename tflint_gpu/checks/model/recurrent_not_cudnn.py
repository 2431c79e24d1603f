"""TFG302: a recurrent layer that runs as a loop of small kernels instead of the fused cuDNN one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import inputs_of, layers_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.op_time import loop_figures, loop_on_cpu, loops_of
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loops_in_step, loudest, slices_by
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Finding, Fix, Measure, Related, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant, options_of
from tflint_gpu.program.values import Const, External, Instance, Items, Produced, Value
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence, GraphLoop

FUSED = ("keras.layers.LSTM", "keras.layers.GRU")

#: Keras layers that no cuDNN kernel exists for; the message says what does.
UNFUSED = {
    "keras.layers.SimpleRNN": "SimpleRNN has no fused kernel and runs step by step; LSTM and GRU have one",
    "keras.layers.ConvLSTM1D": "ConvLSTM1D has no cuDNN kernel: every time step launches its own small kernels",
    "keras.layers.ConvLSTM2D": "ConvLSTM2D has no cuDNN kernel: every time step launches its own small kernels",
    "keras.layers.ConvLSTM3D": "ConvLSTM3D has no cuDNN kernel: every time step launches its own small kernels",
}

#: Cells that have a layer with a fused kernel; what TF 1 called them is listed too.
FUSIBLE_CELLS = {
    "keras.layers.LSTMCell": "LSTM",
    "keras.layers.GRUCell": "GRU",
    "tf.compat.v1.nn.rnn_cell.BasicLSTMCell": "LSTM",
    "tf.compat.v1.nn.rnn_cell.LSTMCell": "LSTM",
    "tf.compat.v1.nn.rnn_cell.GRUCell": "GRU",
}

#: Functions of TF 1 that unroll a cell over time.
UNROLLERS = tuple(
    f"tf.{api}nn.{name}"
    for api in ("compat.v1.", "")
    for name in ("dynamic_rnn", "bidirectional_dynamic_rnn", "static_rnn", "static_bidirectional_rnn")
)

_TANH = ("keras.activations.tanh", "tf.nn.tanh", "tf.tanh", "tf.math.tanh", "keras.ops.tanh")
_SIGMOID = ("keras.activations.sigmoid", "tf.nn.sigmoid", "tf.sigmoid", "tf.math.sigmoid", "keras.ops.sigmoid")

_WHY = "so each time step launches small kernels and the GPU idles between them"

#: Kernels in a step from which on a loop over time is at work; a model of cuDNN layers stays far below.
MANY_KERNELS = 1000


class RecurrentNotCudnn(Check):
    """A recurrent layer whose options, cell or input keep the fused cuDNN kernel away."""

    needles: ClassVar[tuple[str, ...]] = ("LSTM", "GRU", "RNN", "_rnn")
    only_on_gpu: ClassVar[str] = "cuDNN's kernel, or the launches without it"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield recurrent layers without a fused kernel, unless the program keeps off the GPU."""
        if not program.target.on_tensorflow or hides_gpus(program):
            return
        yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*FUSED):
            if not on_cpu(call) and (cause := _cause(call, program.target)):
                reason, remedy, severity = cause
                layer = call.callee.rpartition(".")[2]
                message = f"{layer} {reason}: no cuDNN kernel, {_WHY}; {remedy}"
                yield self.at(call, message, severity=severity, fix=self._fusible(call, severity))
        for call in program.calls_to(*UNFUSED):
            if not on_cpu(call):
                yield self.at(call, UNFUSED[call.callee], severity=Severity.INFO)
        yield from self._cells(program)
        yield from self._cells_in_loops(program)
        yield from self._ragged(program)
        yield from self._left_padded(program)

    def _fusible(self, call: Call, severity: Severity | None) -> Fix | str:
        names = _in_the_way(call)
        if any(_soft(call.kwargs[name]) for name in names if name in call.kwargs):
            return "a default that the user may override decides"
        if not names:
            return "only another version of Keras helps"
        title = f"drop {', '.join(names)}"
        return self.change("drop-arguments", call.location, title, safety="unsafe", names=",".join(names))

    def _cells(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.layers.RNN", *UNROLLERS):
            cells = list(_cells(call.argument("cell", 0)))
            if on_cpu(call) or not cells:
                continue
            if layer := next(filter(None, map(_layer_of, cells)), None):
                many = f"stacked {layer}" if len(cells) > 1 else layer
                message = f"a {layer} cell is looped over time without cuDNN, {_WHY}; use {many} layers instead"
                yield self.at(
                    call, message, fix="the layer takes other arguments and keeps other weights than the cell"
                )
            else:
                message = (
                    "a cell without a fused kernel is looped over time: every time step launches small kernels"
                )
                yield self.at(call, message, severity=Severity.INFO)

    def _cells_in_loops(self, program: Program) -> Iterator[Finding]:
        """A Python loop that feeds a cell one time slice after the other does by hand what a layer does."""
        for call in program.calls_to("keras.layers.Layer.__call__"):
            cell = call.receiver
            if not (isinstance(cell, Produced) and cell.callee in FUSIBLE_CELLS and call.args):
                continue
            sliced = any(slices_by(call.args[0], loop) for loop in loops_in_step(call))
            if sliced and in_training_step(call, program):
                layer = FUSIBLE_CELLS[cell.callee]
                message = (
                    f"a {layer} cell is fed one time slice per round, {_WHY}; a {layer} layer has a fused kernel"
                )
                yield self.at(call, message, severity=Severity.INFO)

    def _ragged(self, program: Program) -> Iterator[Finding]:
        for model in program.models:
            layers = [call for call in layers_of(model) if call.callee in (*FUSED, "keras.layers.RNN")]
            inputs = [call for call in inputs_of(model, program) if call.constant("ragged") is True]
            if layers and inputs:
                message = f"ragged input keeps the recurrent layer off cuDNN, {_WHY}; pad on the right and mask"
                yield self.at(
                    inputs[0], message, related=(Related(layers[0].location, "the recurrent layer it reaches"),)
                )

    def _left_padded(self, program: Program) -> Iterator[Finding]:
        """A mask only reaches cuDNN when sequences are padded at their end; Keras pads at the front by default."""
        masks = [call for call in program.calls_to("keras.layers.Embedding") if call.constant("mask_zero") is True]
        masks += list(program.calls_to("keras.layers.Masking"))
        for model in program.models:
            layers = [call for call in layers_of(model) if call.callee in FUSED]
            masked = [call for call in model.layers if any(call is mask for mask in masks)]
            if not layers or not masked:
                continue
            for call in program.calls_to("keras.utils.pad_sequences"):
                padding = call.argument("padding", 3)
                if padding is None or (isinstance(padding, Const) and padding.value == "pre"):
                    yield self.at(
                        call,
                        f"padding at the front with a mask keeps {layers[0].callee.rpartition('.')[2]} off cuDNN"
                        f"{_left_padding(program.target)}; use padding='post'",
                        related=(Related(masked[0].location, "the mask is made here"),),
                        fix=self._padded_behind(call, padding),
                    )

    def _padded_behind(self, call: Call, padding: Value | None) -> Fix:
        title = 'pass padding="post"'
        if padding is None:
            return self.change(
                "add-argument", call.location, title, safety="unsafe", name="padding", value='"post"'
            )
        place = call.place_of("padding", 3)
        return self.change("rewrite", place, title, safety="unsafe", text='"post"', literal="yes")

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Look for cuDNN's op at the line, else for the loop over time and the launches that it makes."""
        here = [placement for placement in evidence.placements if touches(placement.spot, finding.location)]
        fused = [placement for placement in here if placement.op.startswith("CudnnRNN")]
        if any(placement.device == "gpu" and not placement.predicted for placement in fused):
            return Judgement(Verdict.REFUTED, (Measure("cudnn_ops_per_step", float(sum(p.count for p in fused))),))
        loops = loops_of(finding, evidence)
        if evidence.gpu_busy_share is None:
            return _without_gpu(loops, evidence)
        kernels, launch = evidence.kernels, evidence.share("launch")
        if kernels is None or launch is None or kernels.per_step < MANY_KERNELS:
            return None
        count = Measure("kernels_per_step", kernels.per_step)
        return weigh(launch, "launch_share", "trace: launching kernels", count, *loop_figures(loops))


def _without_gpu(loops: list[GraphLoop], evidence: Evidence) -> Judgement | None:
    """Judge by the loop over time as a CPU ran it: what cuDNN would give back is not known there."""
    times = [loop.ms for loop in loops if loop.ms is not None]
    share = share_of_step(sum(times), evidence) if times else None
    if share is None:
        return None
    return replace(loop_on_cpu(share, "", loops), impact=None)


def on_cpu(call: Call) -> bool:
    """Say whether the call stands in a ``with tf.device`` block of the CPU, or behind a debug switch."""
    scope = call.context.scope("device")
    device = scope.value if scope else None
    return call.context.debug or (isinstance(device, Const) and "cpu" in str(device.value).lower())


def _left_padding(target: Target) -> str:
    # Keras 2 checks the mask at run time and falls back; Keras 3 asserts it, and the step fails on a GPU.
    return (
        " (it falls back to a loop over time)"
        if target.legacy_keras
        else " (Keras 3 stops with an error on a GPU)"
    )


def _cause(call: Call, target: Target) -> tuple[str, str, Severity | None] | None:
    """Return what keeps the LSTM or GRU `call` off cuDNN, the remedy, and a lower severity where one is due."""
    rate = call.argument("recurrent_dropout")
    if isinstance(rate, Const) and isinstance(rate.value, (int, float)) and rate.value > 0:
        return f"with recurrent_dropout={rate.value:g}", "use dropout=", _soft(rate)
    for name, wanted, known in (("activation", "tanh", _TANH), ("recurrent_activation", "sigmoid", _SIGMOID)):
        value = call.argument(name)
        if value is not None and (other := _differs(value, wanted, known)):
            return f"with {name}={other}", f"cuDNN needs {wanted}", _soft(value)
    for name, bad, remedy, severity in (
        ("use_bias", False, "keep the bias", None),
        ("reset_after", False, "keep reset_after=True", None),
        ("use_cudnn", False, "leave use_cudnn at 'auto'", None),
        # An unrolled short sequence is a deliberate choice: it has no loop, only many ops.
        ("unroll", True, "leave unroll off", Severity.INFO),
    ):
        value = call.argument(name)
        if isinstance(value, Const) and value.value is bad:
            return f"with {name}={bad}", remedy, _soft(value) or severity
    rate = call.argument("dropout")
    if (3, 0) <= target.keras < (3, 4) and isinstance(rate, Const) and rate.value:
        version = ".".join(map(str, target.keras))
        return f"with dropout under Keras {version}", "Keras 3.4 lifts this", _soft(rate)
    return None


def _in_the_way(call: Call) -> list[str]:
    """Return the arguments of the LSTM or GRU `call` without which cuDNN could run it."""
    rate = call.argument("recurrent_dropout")
    found = [] if rate is None or constant(rate) in (0, 0.0) else ["recurrent_dropout"]
    for name, wanted, known in (("activation", "tanh", _TANH), ("recurrent_activation", "sigmoid", _SIGMOID)):
        value = call.argument(name)
        if value is not None and _differs(value, wanted, known):
            found.append(name)
    switches = (("use_bias", False), ("reset_after", False), ("use_cudnn", False), ("unroll", True))
    return found + [name for name, bad in switches if constant(call.argument(name)) is bad]


def _soft(value: Value) -> Severity | None:
    return Severity.INFO if isinstance(value, Const) and value.soft else None


def _differs(value: Value, wanted: str, known: tuple[str, ...]) -> str:
    """Return how `value` is written if it is certainly another activation than `wanted`, else ""."""
    if isinstance(value, Const):
        return "" if value.value == wanted else repr(value.value)
    if isinstance(value, External):
        return "" if value.name in known else value.name.rpartition(".")[2]
    if isinstance(value, Produced) and value.callee.startswith("keras.layers."):
        return value.callee.rpartition(".")[2]
    return ""


def _cells(value: Value | None) -> Iterator[Produced | Instance]:
    """Yield the cells that `value` stands for, through lists and stacks of cells."""
    for option in options_of(value):
        if isinstance(option, Items):
            for item in option.items:
                yield from _cells(item)
        elif isinstance(option, Produced) and option.callee.endswith((".StackedRNNCells", ".MultiRNNCell")):
            yield from _cells(option.call.argument("cells", 0))
        elif isinstance(option, Instance) or (isinstance(option, Produced) and option.callee.endswith("Cell")):
            yield option


def _layer_of(cell: Produced | Instance) -> str | None:
    """Return the layer with a fused kernel that does what `cell` does in a loop."""
    return FUSIBLE_CELLS.get(cell.callee) if isinstance(cell, Produced) else None
