"""TFG504: a ``with tf.device("/CPU:0")`` that holds a trained model or its step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import inputs_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loudest
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Finding, Measure, Related, Verdict
from tflint_gpu.program.context import Region, Scope
from tflint_gpu.program.kernels import cpu_only
from tflint_gpu.program.values import Const, Instance, Produced
from tflint_gpu.program.views import produced_by

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Model, Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: Layers that hold no arithmetic worth a device.
_LIGHT = ("Input", "InputLayer", "Flatten", "Reshape", "Dropout", "Rescaling", "Embedding")


#: Calls with arithmetic worth a device; a counter or a learning rate is not.
_HEAVY = (
    "keras.layers.Layer.__call__",
    "keras.Model.__call__",
    "keras.ops.",
    "tf.matmul",
    "tf.einsum",
    "tf.tensordot",
    "tf.linalg.",
    "tf.nn.",
    "tf.signal.",
    "tf.image.",
)


class ForcedCpuPlacement(Check):
    """A device block of the CPU around the layers of a trained model, its training, or ops of its step."""

    needles: ClassVar[tuple[str, ...]] = (".device(", "import device", "OneDeviceStrategy")
    only_on_gpu: ClassVar[str] = "which ops the block keeps off it"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield device blocks of the CPU that training runs in; around data or evaluation they are fine."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        towers = [call.args[0] for call in program.calls_to("keras.utils.multi_gpu_model") if call.args]
        for model in program.models:
            # The recipe of multi_gpu_model keeps the template's weights on the host: that rule speaks of it.
            if model.trained and not any(tower is model for tower in towers):
                yield from self._model(model, program)
        for run in program.runs:
            yield from self._run(run)
        yield from self._steps(program)
        yield from self._ops(program)

    def _steps(self, program: Program) -> Iterator[Finding]:
        held = [(scope, step.apply) for step in program.steps if (scope := cpu_scope(step.apply))]
        hosts = _hosts_of_towers(program) if held else set()
        for scope, apply in held:
            if id(scope) not in hosts:
                yield self._at(scope, apply, "the training step", "it")

    def _ops(self, program: Program) -> Iterator[Finding]:
        heavy = program.calls_where(lambda name: name.startswith(_HEAVY))
        held = [(scope, call) for call in heavy if call.context.region and (scope := _scope_inside(call))]
        blocks = {id(scope) for scope, _ in held}
        inside = program.calls_within(lambda context: id(_block_inside(context)) in blocks) if held else []
        tables = {id(_scope_inside(call)) for call in inside if _keeps_table(call)}
        version = program.target.tensorflow
        for scope, call in held:
            if id(scope) in tables or cpu_only(call.callee, call, version):
                continue
            if in_training_step(call, program):
                yield self._at(scope, call, "ops of the training step", call.callee.rpartition(".")[2])

    def _model(self, model: Model, program: Program) -> Iterator[Finding]:
        places = [call for call in (model.call, *model.layers) if call is not None]
        held = [call for call in places if cpu_scope(call)]
        heavy = [call for call in held if call.callee.rpartition(".")[2] not in _LIGHT]
        if heavy and _built_in_place(model, program):
            scope = cpu_scope(heavy[0])
            assert scope is not None
            yield self._at(scope, heavy[0], "the model", "its layers are made here")

    def _run(self, run: TrainingRun) -> Iterator[Finding]:
        if run.call is not None and (scope := cpu_scope(run.call)):
            yield self._at(scope, run.call, "the training", "it")
        strategy = produced_by(run.strategy, "tf.distribute.OneDeviceStrategy")
        if strategy is not None and _is_cpu(strategy.argument("device", 0)):
            message = "this strategy puts the model and its training on the CPU, so the GPU gets none of that work"
            yield self.at(strategy, message)

    def _at(self, scope: Scope, call: Call, what: str, part: str) -> Finding:
        return self.at(
            scope.location,
            f"this block pins {what} to the CPU, so the GPU gets none of that work; "
            "keep only the input pipeline in it",
            qualname=call.qualname,
            related=(Related(call.location, f"{part} runs on the CPU" if part != "it" else "pinned to the CPU"),),
            fix=self.change(
                "take-out-of-block", scope.location, "take the code out of the block", safety="unsafe"
            ),
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Look whether the ops of the step ran on the CPU of a machine with a GPU; else nothing is known."""
        if evidence.environment.device.kind != "gpu":
            return None
        ran = [placement for placement in evidence.placements if placement.in_step and not placement.predicted]
        on_cpu = [placement for placement in ran if placement.device == "cpu"]
        if not ran:
            return None
        if not on_cpu:
            return Judgement(Verdict.REFUTED, (Measure("cpu_ops_per_step", 0.0),))
        spent = sum(placement.ms or 0.0 for placement in on_cpu)
        share = share_of_step(spent, evidence)
        count = Measure("cpu_ops_per_step", float(sum(placement.count for placement in on_cpu)))
        return None if share is None else weigh(share, "cpu_op_share", "trace: ops on the CPU", count)


def cpu_scope(call: Call) -> Scope | None:
    """Return the innermost device block around `call` if it names the CPU for certain."""
    scope = call.context.scope("device")
    return scope if scope and _names_cpu(scope) else None


def _hosts_of_towers(program: Program) -> set[int]:
    """Return the CPU blocks (by identity) that hold blocks of GPUs: they only gather what those computed."""
    found = set()
    for call in program.calls:
        devices = [frame for frame in call.context if isinstance(frame, Scope) and frame.kind == "device"]
        inner = [scope for scope in devices if not _names_cpu(scope)]
        if inner:
            found |= {id(scope) for scope in devices[devices.index(inner[0]) :] if _names_cpu(scope)}
    return found


def _names_cpu(scope: Scope) -> bool:
    return _is_cpu(scope.value)


def _is_cpu(device: Value | None) -> bool:
    return (
        isinstance(device, Const)
        and not device.soft
        and isinstance(device.value, str)
        and device.value.lower().lstrip("/").removeprefix("device:").startswith("cpu")
    )


def _scope_inside(call: Call) -> Scope | None:
    return _block_inside(call.context)


def _block_inside(context: Context) -> Scope | None:
    """Return the CPU block between a call in `context` and the region it runs in."""
    for frame in context:
        if isinstance(frame, Region):
            return None
        if isinstance(frame, Scope) and frame.kind == "device":
            return frame if _names_cpu(frame) else None
    return None


def _keeps_table(call: Call) -> bool:
    """Say whether `call` looks rows up: a table too large for the GPU is kept on the host on purpose."""
    layer = call.receiver
    made = layer.callee if isinstance(layer, Produced) else layer.cls.name if isinstance(layer, Instance) else ""
    words = f"{call.callee} {made}".lower()
    return any(word in words for word in ("embed", "lookup", "gather"))


def _built_in_place(model: Model, program: Program) -> bool:
    """Say whether the block holds when variables are made: without an input shape that is first in training."""
    if model.kind in ("functional", "application", "loaded"):
        return True
    if model.kind == "sequential":
        shaped = ("input_shape", "input_dim", "batch_input_shape")
        first = model.layers[0].kwargs if model.layers else {}
        return bool(inputs_of(model, program)) or any(name in first for name in shaped)
    return False
