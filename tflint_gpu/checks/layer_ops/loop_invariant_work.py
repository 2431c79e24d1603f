"""TFG511: work in every step whose inputs never change, or that the step has done already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import in_every_round, in_scope_of, step_loops
from tflint_gpu.checks.op_time import judge_time
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loudest, placements_of
from tflint_gpu.findings import Finding, Related
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Region, Scope
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Attribute, Choice, Const, External, Items, Produced, Tensor, Value
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Functions with work worth saving.
_HEAVY = ("tf.linalg.", "tf.signal.", "tf.image.", "tf.nn.conv", "tf.matmul", "tf.einsum", "tf.tensordot")
_FORWARD = "keras.Model.__call__"

#: Calls that change the weights of a model from outside: its result is another one afterwards.
_WRITES = ("set_weights", "load_weights", "assign")

_METRICS = ("keras.metrics.",)

_FEATURES = (
    "the input of this network never changes, yet every step computes its features again and the rest of the step "
    "waits; compute them once before the loop"
)
_PRODUCT = (
    "the inputs of this never change, yet every step computes it again and the rest of the step waits; compute it "
    "once before the loop"
)


class LoopInvariantWork(Check):
    """Features of a fixed image, products of fixed tensors, a second forward pass, a variable made anew."""

    needles: ClassVar[tuple[str, ...]] = ("GradientTape", "minimize(")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield work of the step where it is certain that once would do; constants in graphs are folded."""
        if program.target.on_tensorflow and not hides_gpus(program) and program.steps:
            yield from loudest((*self._fixed(program), *self._twice(program), *self._variables(program)))

    def _fixed(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_where(lambda name: name == _FORWARD or name.startswith(_HEAVY)):
            tensors = [value for value in (*call.args, *call.kwargs.values()) if not _is_plain(value)]
            if not tensors or not all(_made_once(value) for value in tensors):
                continue
            forward = call.callee == _FORWARD
            if forward and not (isinstance(call.receiver, Model) and _is_frozen(call.receiver, program)):
                continue
            again = bool(call.context.all_loops) or bool({"train-step", "loss"} & set(call.context.regions))
            if again and in_training_step(call, program) and not call.context.all_guards:
                yield self.at(call, _FEATURES if forward else _PRODUCT)

    def _twice(self, program: Program) -> Iterator[Finding]:
        """Yield forward passes of a batch that the tape has seen, whose result only a metric takes."""
        passes = [call for call in program.calls_to("keras.Model.__call__") if call.args]
        taped = [call for call in passes if in_scope_of(call.context, "tape")]
        for call in passes if taped else ():
            if in_scope_of(call.context, "tape") or not in_training_step(call, program):
                continue
            first = next((other for other in taped if _same_pass(call, other)), None)
            if first is not None and _only_measured(call, program):
                yield self.at(
                    call,
                    "a second forward pass of the same batch, only for a metric: the GPU does that part of the "
                    "step twice; give the metric the prediction of the tape",
                    related=(Related(first.location, "the first pass"),),
                )

    def _variables(self, program: Program) -> Iterator[Finding]:
        loops = step_loops(program)
        for call in program.calls_to("tf.Variable") if loops else ():
            made_in = next((loop for loop in loops if in_every_round(call, loop)), None)
            initial = call.argument("initial_value", 0)
            if made_in is not None and (_is_plain(initial) or _made_once(initial)):
                yield self.at(
                    call,
                    "every step makes this variable anew, memory and copy included, and the GPU waits for Python; "
                    "make it once before the loop and assign to it",
                    related=(Related(made_in.location, "in every round of this loop"),),
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time of the ops that the line made in each step."""
        return judge_time(placements_of(finding, evidence), evidence, "op_share", "trace: time of this line's ops")


def _is_plain(value: Value | None) -> bool:
    """Say whether `value` is a literal or a name of TensorFlow's."""
    if isinstance(value, Items):
        return value.complete and all(_is_plain(item) for item in value.items)
    return value is None or isinstance(value, (Const, External))


def _made_once(value: Value | None) -> bool:
    """Say whether `value` is certainly a tensor made before any loop, outside all code that the runtime calls."""
    match value:
        case Tensor(symbolic=False, origin=Call(context=context)):
            # A function that nobody calls may be called in a loop.
            return not context.all_loops and not context.region and _runs_at_import(value)
        case Items(items=items, complete=True):
            return bool(items) and all(_is_plain(item) or _made_once(item) for item in items)
        case Choice(options=options):
            return all(_made_once(option) for option in options)
        case _:
            return False


def _runs_at_import(value: Tensor) -> bool:
    """Say whether the op runs at module level, by itself or in a function called from there."""
    call = value.origin
    return call is not None and (not call.qualname or bool(call.context.activations))


def _is_frozen(model: Model, program: Program) -> bool:
    """Say whether `model` is a trained network that nothing here trains: its features of one image are fixed."""
    if model.trained or not _is_pretrained(model):
        return False
    for step in program.steps:
        for part in (inner for argument in step.apply.args for inner in walk(argument)):
            if part is model or (isinstance(part, Attribute) and part.base is model):
                return False
    return not any(call.receiver is model and call.callee.endswith(_WRITES) for call in program.calls)


def _is_pretrained(model: Model) -> bool:
    if model.kind in ("application", "loaded"):
        return True
    outputs = model.call.argument("outputs", 1) if model.call and model.kind == "functional" else None
    return any(isinstance(part, Model) and part.kind == "application" for part in _bases(outputs))


def _bases(value: Value | None) -> Iterator[Value]:
    """Yield the models that `value` is an output or a layer's output of."""
    for part in walk(value):
        if isinstance(part, Produced) and isinstance(part.call.receiver, Model):
            yield part.call.receiver
        yield part


def _same_pass(call: Call, taped: Call) -> bool:
    """Say whether two calls apply one model to one batch in one step."""
    if call.receiver is not taped.receiver or call.args[0] is not taped.args[0]:
        return False
    return _step_of(call) == _step_of(taped) and not call.context.guards


def _step_of(call: Call) -> tuple[int, ...]:
    """Return what the call runs in, tapes left out: the same for everything that one step does."""
    return tuple(
        id(frame)
        for frame in call.context
        if not (isinstance(frame, Scope) and frame.kind == "tape")
        and not (isinstance(frame, Region) and frame.kind == "model")
    )


def _only_measured(call: Call, program: Program) -> bool:
    """Say whether the result goes into metrics and nowhere else that is seen."""
    users = [
        other
        for other in program.calls
        if other is not call
        and any(
            isinstance(value, Tensor) and value.origin is call for value in (*other.args, *other.kwargs.values())
        )
    ]
    return bool(users) and all(other.callee.startswith(_METRICS) for other in users)
