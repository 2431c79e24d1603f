"""What is known of the training step: which calls belong to it, and how a trace judges where their ops ran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.checks.architecture import is_symbolic, made_of, near
from tflint_gpu.checks.check import Judgement
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Location, Measure, Verdict
from tflint_gpu.program.context import Activation, Guard, Loop, Region, Scope
from tflint_gpu.program.questions import constant, is_true, walk
from tflint_gpu.program.values import (
    Attribute,
    Const,
    Element,
    GraphFunction,
    Items,
    Operation,
    Parameter,
    Produced,
    Tensor,
)
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Class, Value
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Evidence, Placement


def loudest(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield one finding a place, the loudest: the same text is met once in every context that reaches it."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        other = kept.get(finding.location)
        if other is None or finding.severity > other.severity:
            kept[finding.location] = finding
    yield from kept.values()


def in_training_step(call: Call, program: Program) -> bool:
    """Say whether `call` runs in every training step: in model, loss or step, and not in input or inference."""
    context = call.context
    regions = set(context.regions)
    if regions & {"dataset", "loader", "test-step", "epoch-callback"} or context.debug:
        return False
    now_and_then = any(isinstance(frame, Guard) and frame.kind == "periodic" for frame in context.frames())
    if (
        context.periodic
        or (context.region and now_and_then)
        or any(_inference_only(guard) for guard in context.all_guards)
    ):
        return False
    if _applied_for_inference(call, program):
        return False
    if regions & {"train-step", "loss"}:
        return True
    steps = program.once(_steps)
    if any(
        isinstance(frame, Scope) and frame.kind == "tape" and frame.location in steps.tapes for frame in context
    ):
        return True
    if any(id(owner) in steps.functions for owner in _graph_owners(call)):
        return True
    if any(id(loop) in steps.drivers for loop in context.loops[:1]):
        return True
    return "model" in regions and not _in_other_graph(call) and _of_trained_model(call, program)


@dataclass(frozen=True)
class _Steps:
    """Where the steps of a program are: their tapes; by identity their graph functions and loops around them."""

    tapes: frozenset[Location]
    functions: frozenset[int]
    drivers: frozenset[int]


def _steps(program: Program) -> _Steps:
    return _Steps(
        frozenset(step.tape for step in program.steps),
        frozenset(id(owner) for step in program.steps for owner in _graph_owners(step.apply)),
        frozenset(id(step.loop) for step in program.steps if step.loop is not None),
    )


def _of_trained_model(call: Call, program: Program) -> bool:
    """Say whether an op of a forward pass is trained: one that only a model for export is made of is not.

    A project that trains nothing it is known by holds building blocks for one that does, and so does what no
    script of it brings together with what is trained.
    """
    reading = call.context.activations
    trained = [model for model in program.models if model.trained and _beside(model, call, program)]
    if any(_prepares_input(frame.function.owner, trained) for frame in reading):
        return False
    if not program.trains() or not trained:
        return True
    outermost = [frame for frame in call.context if isinstance(frame, Region)][-1]
    if outermost.location == call.location:
        return not is_symbolic(call) or any(made_of(model, call) for model in trained)
    for applied in program.once(_layers_applied).get(outermost.location, ()):
        if is_symbolic(applied):
            return any(made_of(model, applied) for model in trained)
    if _built_beside(outermost, call, program, trained) is False:
        return False
    function = next(
        (frame.function for frame in reversed(tuple(call.context)) if isinstance(frame, Activation)), None
    )
    owner = function.owner if function else None
    if owner is None or not owner.is_a("keras.Model"):
        return True
    return any(model.instance is not None and model.instance.cls is owner for model in trained)


def _layers_applied(program: Program) -> dict[Location, list[Call]]:
    applied: dict[Location, list[Call]] = {}
    for call in program.calls_to("keras.layers.Layer.__call__"):
        applied.setdefault(call.location, []).append(call)
    return applied


def _beside(model: Model, call: Call, program: Program) -> bool:
    """Say whether one script may have both `model` and what leads to `call`."""
    made = model.call or (model.instance.call if model.instance else None)
    reading = call.context.activations
    begun = reading[-1].function.module if reading else call.module
    return made is None or program.together(made.module, begun)


def _built_beside(region: Region, call: Call, program: Program, trained: list[Model]) -> bool | None:
    """Say whether the function in which a layer is applied builds a model that is trained, or a part of one.

    None where it builds no model, or none in another call that is trained: a function that builds one network for
    training and one for export is run once for each.
    """
    frames = tuple(call.context)
    outside = frames[frames.index(region) + 1 :]
    around = next((frame for frame in outside if isinstance(frame, Activation)), None)
    built = [
        model
        for model in program.models
        if around is not None and model.call is not None and around in tuple(model.call.context)
    ]
    if around is None or not built:
        return None
    if not any(_runs_in(model, around.function.node) for model in trained):
        return None
    layers = {id(layer) for model in trained for layer in model.layers}
    return any(model.trained or any(id(layer) in layers for layer in model.layers) for model in built)


def _runs_in(model: Model, node: object) -> bool:
    """Say whether `model` was built in a call of the function that `node` is the text of."""
    return model.call is not None and any(frame.function.node is node for frame in model.call.context.activations)


_INPUT_LAYER = re.compile(r"tokeni[sz]er|preprocess|augment", re.IGNORECASE)


def _prepares_input(owner: Class | None, trained: list[Model]) -> bool:
    """Say whether `owner` is by its name a layer for the data, and none that a trained model is seen to hold."""
    if owner is None or not owner.is_a("keras.layers.Layer") or not _INPUT_LAYER.search(owner.name):
        return False
    made = f"{owner.module.name}:{owner.qualname}"
    return not any(layer.callee == made for model in trained for layer in model.layers)


def _applied_for_inference(call: Call, program: Program) -> bool:
    """Say whether ``model(x, training=False)`` applied the model of `call`, or stands in one function with it."""
    frames = tuple(call.context)
    outermost = next((frame for frame in reversed(frames) if isinstance(frame, Region)), None)
    if outermost is None or outermost.kind != "model":
        return False
    first = next((frame.function.node for frame in reversed(frames) if isinstance(frame, Activation)), None)
    places, functions = program.once(_inferences)
    return outermost.location in places or id(first) in functions


def _inferences(program: Program) -> tuple[set[Location], set[int]]:
    """Return where ``model(x, training=False)`` stands, and the functions (by identity) that lead there."""
    places: set[Location] = set()
    functions: set[int] = set()
    for model in program.calls_to("keras.Model.__call__", "keras.layers.Layer.__call__"):
        if "training" in model.kwargs and constant(model.kwargs["training"]) is False:
            around = model.context.activations
            places.add(model.location)
            functions.update(id(frame.function.node) for frame in around[-1:])
    return places, functions


def _in_other_graph(call: Call) -> bool:
    """Say whether a ``tf.function`` without a tape applies the model of `call`: for export, say, or input."""
    outermost = [frame for frame in call.context if isinstance(frame, Region)][-1]
    taped = any(isinstance(frame, Scope) and frame.kind == "tape" for frame in call.context)
    return outermost.kind == "graph" and not taped


def _graph_owners(call: Call) -> list[object]:
    frames = (frame for frame in call.context if isinstance(frame, Region) and frame.kind == "graph")
    return [frame.owner for frame in frames if frame.owner is not None]


def _inference_only(guard: Guard) -> bool:
    """Say whether only inference takes a branch: ``if not training``, or the ``else`` of ``if training``."""
    test, negated = guard.test, guard.negated
    while isinstance(test, Operation) and test.operator == "not":
        test, negated = test.operands[0], not negated
    return negated and isinstance(test, Parameter) and test.name == "training"


def slices_by(value: Value, loop: Loop) -> bool:
    """Say whether `value` holds a slice of a tensor by the variable of `loop`: ``x[:, t]`` in ``for t in …``.

    A bare ``x[i]`` may be an item of a list, such as a model's outputs, unless `x` is an op's result or the loop
    counts by its shape.
    """
    return any(is_slice(part, loop) for part in near(value))


def is_slice(value: Value, loop: Loop) -> bool:
    """Say whether `value` is such a slice itself."""
    if not isinstance(value, Tensor) or value.origin is not None or len(value.parents) != 2:
        return False
    base, key = value.parents
    if not isinstance(base, Tensor) or not _drawn_by(key, loop):
        return False
    cut = isinstance(key, Items) and any(_spans(inner) for inner in key.items)
    return cut or made_by_op(base) or _counts_by_shape(loop) or (loop.count or 0) > _LONGEST_LIST


def _spans(key: Value) -> bool:
    """Say whether part of a subscript is a slice or an ellipsis: only a tensor takes it beside another index."""
    return isinstance(key, Operation) or (isinstance(key, Const) and key.value is Ellipsis)


#: A model has fewer outputs, and a layer fewer inputs, than this.
_LONGEST_LIST = 32

#: Ops whose result is a list of tensors, or whatever structure they are given.
_LISTS = (
    "tf.split",
    "tf.GradientTape.",
    "tf.nest.",
    "tf.meshgrid",
    "tf.dynamic_partition",
    "tf.Tensor.",
    "tf.data.",
    "tf.distribute.",
    "tf.gradients",
    "tf.compat.v1.gradients",
    "tf.compat.v1.train.",
)


def made_by_op(value: Value | None) -> bool:
    """Say whether `value` is certainly one tensor: an op's result, or arithmetic on tensors."""
    if not isinstance(value, Tensor):
        return False
    if value.origin is None:
        return len(value.parents) == 2 and all(isinstance(part, Tensor) for part in value.parents)
    name = value.origin.callee
    return name.startswith(("tf.", "keras.ops.", "keras.backend.")) and not name.startswith(_LISTS)


def _counts_by_shape(loop: Loop) -> bool:
    """Say whether the loop runs over a dimension: ``range(x.shape[0])``, ``tf.range(tf.shape(x)[0])``."""
    drawn = loop.iterable
    made = drawn.call if isinstance(drawn, Produced) else drawn.origin if isinstance(drawn, Tensor) else None
    if made is None or made.callee not in ("builtins.range", "tf.range"):
        return False
    for part in (inner for argument in made.args for inner in walk(argument)):
        if isinstance(part, Attribute) and part.name == "shape":
            return True
        if isinstance(part, Tensor) and part.origin is not None and part.origin.callee == "tf.shape":
            return True
    return False


def _drawn_by(key: Value, loop: Loop) -> bool:
    """Say whether `key` is what `loop` draws, or counts from it: ``i``, ``i + 1``, ``(slice, i)``."""
    match key:
        case Element(source=source):
            return source is loop.iterable
        case Tensor(parents=(source,)):
            return source is loop.iterable
        case Items(items=parts) | Operation(operands=parts):
            return any(_drawn_by(part, loop) for part in parts)
        case _:
            return False


def loops_in_step(call: Call) -> list[Loop]:
    """Return the loops around `call` inside the step: behind a region, a tape, or a model's construction."""
    frames = list(call.context)
    inside = ("model", "loss", "train-step", "graph")
    found = []
    for index, frame in enumerate(frames):
        if not isinstance(frame, Loop):
            continue
        outer = frames[index + 1 :]
        behind = any(isinstance(f, Region) and f.kind in inside for f in outer)
        taped = any(isinstance(f, Scope) and f.kind == "tape" for f in outer)
        if behind or taped or is_symbolic(call):
            found.append(frame)
    return found


def hides_gpus(program: Program) -> bool:
    """Say whether the program switches every GPU off by itself: then nothing here is about a GPU."""
    for setting in program.settings:
        if setting.name == "CUDA_VISIBLE_DEVICES" and _nothing(setting.value):
            return True
    return any(_no_devices(call) for call in program.calls_to("tf.config.set_visible_devices"))


def _nothing(value: Value) -> bool:
    return isinstance(value, Const) and str(value.value).strip() in ("", "-1")


def _no_devices(call: Call) -> bool:
    devices, kind = call.argument("devices", 0), call.constant("device_type", 1)
    return isinstance(devices, Items) and devices.complete and not devices.items and kind in ("GPU", None)


def placements_of(finding: Finding, evidence: Evidence) -> list[Placement]:
    """Return the ops of the step that the lines of `finding` made, of the types in ``detail["ops"]`` if given.

    Keras replays the layers of a functional model, so their ops may carry another line: a finding with
    ``detail["replayed"]`` takes ops of its types from anywhere in the step.
    """
    wanted = finding.detail.get("ops", ())
    fitting = [p for p in evidence.placements if p.in_step and (not wanted or p.op in wanted)]
    here = [placement for placement in fitting if touches(placement.spot, finding.location)]
    return here or (fitting if finding.detail.get("replayed") else [])


def judge_placement(finding: Finding, evidence: Evidence) -> Judgement | None:
    """Judge by the time that the finding's ops spend on the CPU; None where the trace did not see them there."""
    found = placements_of(finding, evidence)
    if not found or not evidence.step_ms:
        return None
    on_cpu = [placement for placement in found if placement.device == "cpu"]
    if not on_cpu:
        return Judgement(Verdict.REFUTED, (Measure("cpu_ops_per_step", 0.0),))
    times = [placement.ms for placement in on_cpu if placement.ms is not None]
    if not times:
        return None
    measures = (
        Measure("cpu_ops_per_step", float(sum(placement.count for placement in on_cpu))),
        Measure("cpu_op_time", sum(times), "ms"),
    )
    predicted = all(placement.predicted for placement in on_cpu)
    basis = "trace: time of these ops on the CPU" + (" (predicted placement)" if predicted else "")
    message = _as_predicted(finding.message, on_cpu) if predicted else None
    judged = weigh(sum(times) / evidence.step_ms, "cpu_op_share", basis, *measures, message=message)
    if predicted and judged.verdict is Verdict.MINOR:
        reason = "the op itself is short; only a GPU shows what the way to the CPU and back adds"
        return Judgement(Verdict.UNMEASURED, judged.measures, reason=reason)
    return judged


def _as_predicted(message: str, placements: list[Placement]) -> str:
    """Return `message` with the note that no GPU was there to see it on, short enough for one line."""
    names = ", ".join(sorted({placement.op for placement in placements})[:2])
    note = f" (predicted: no GPU kernel for {names})"
    room = 199 - len(note)
    return (message if len(message) <= room else message[: room - 2].rpartition(" ")[0] + " …") + note


def compiled(call: Call, program: Program) -> str:
    """Say how XLA treats the step of `call`: ``yes`` by the code's own word, ``auto`` by Keras 3, else ""."""
    owners = [frame.owner for frame in call.context if isinstance(frame, Region)]
    if any(isinstance(owner, GraphFunction) and owner.jit for owner in owners):
        return "yes"
    if any(isinstance(owner, GraphFunction) for owner in owners):
        return ""
    compiles = ((model, compile_) for model in program.models for compile_ in model.compiles)
    words = [made.argument("jit_compile") for model, made in compiles if _beside(model, call, program)]
    if words and all(is_true(word) for word in words):
        return "yes"
    if program.target.legacy_keras or any(word is not None and constant(word) is not True for word in words):
        return ""
    return "auto" if words else ""
