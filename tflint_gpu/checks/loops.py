"""What is known of training loops: which loops run once a step, what surely happens in every round, what syncs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Judgement
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Location, Measure, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Activation, Context, Guard, Loop, Region, Scope
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import (
    Choice,
    Element,
    GraphFunction,
    Instance,
    Items,
    Operation,
    Parameter,
    Produced,
    Subscript,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program, Step
    from tflint_gpu.trace.evidence import Evidence

#: Loops inside a graph function of at most this many rounds still make one step (critic steps of a WGAN are 5).
STEPS_IN_ONE = 16

#: A step of Keras' own makes about three eager executions (measured, Keras 3.15); eager steps make dozens.
FEW_EAGER_OPS = 10

#: Packages whose objects have a `step` that advances a simulated world.
_ENVIRONMENTS = ("gym", "gymnasium", "pettingzoo", "dm_control", "tf_agents", "retro")


def step_loops(program: Program) -> dict[Loop, Step]:
    """Return the Python loops whose every round is a training step or two, with a step of theirs.

    Loops around a graph function that trains a whole epoch inside are left out, and so is what `fit` drives.
    """
    return {
        loop: step
        for step in program.steps
        if (loop := _python_loop(step)) is not None and "train-step" not in step.apply.context.regions
    }


def _python_loop(step: Step) -> Loop | None:
    """Return the loop that drives `step` from Python; None where the graph itself loops over many steps."""
    found: Loop | None = None
    for frame in step.apply.context:
        if isinstance(frame, Loop) and found is None:
            found = frame
        elif isinstance(frame, Region):
            if found is not None and (found.count is None or found.count > STEPS_IN_ONE):
                return None
            found = None
    return found


def guards_within(context: Context, loop: Loop) -> list[Guard] | None:
    """Return the branches between `context` and `loop`, innermost first; None where it does not lie in `loop`."""
    found: list[Guard] = []
    for frame in context:
        if frame is loop:
            return found
        if isinstance(frame, Guard):
            found.append(frame)
    return None


def in_every_round(call: Call, loop: Loop) -> bool:
    """Say whether `call` surely runs from Python in every round of `loop`: no branch, no traced region between."""
    for frame in call.context:
        if frame is loop:
            return not call.context.in_graph
        if isinstance(frame, Region) or (isinstance(frame, Guard) and frame.every != 1):
            return False
    return False


def function_of_tape(step: Step) -> Activation | None:
    """Return the project function, called from the step's loop, that opens the tape; None where the loop does."""
    for frame in step.apply.context:
        if frame is step.loop:
            return None
        if isinstance(frame, Activation):
            place = frame.function.location
            if place.path == step.tape.path and place.cell == step.tape.cell and place.line <= step.tape.line:
                return frame
    return None


def span(first: Location, last: Location) -> Location:
    """Return the range from the start of `first` to the end of `last`, or `first` where they are not in order."""
    if (first.path, first.cell) != (last.path, last.cell) or last.line < first.line:
        return first
    return Location(first.path, first.line, first.column, last.line, last.end_column, first.cell)


def simulates(program: Program) -> bool:
    """Say whether some module imports simulated environments: the program is reinforcement learning."""
    return any(module.packages & set(_ENVIRONMENTS) for module in program.modules)


def drives_environment(loop: Loop) -> bool:
    """Say whether the loop steps a simulated environment, as reinforcement learning does."""
    for call in loop.calls:
        if call.callee.rpartition(".")[2].rpartition(":")[2] != "step":
            continue
        if call.callee.split(".")[0].split(":")[0] in _ENVIRONMENTS:
            return True
        receiver = call.receiver
        if isinstance(receiver, Instance) and any(
            word in receiver.cls.name for word in ("Env", "Game", "World", "Simulat")
        ):
            return True
        if isinstance(receiver, Produced) and receiver.callee.split(".")[0] in _ENVIRONMENTS:
            return True
    return False


def adapts(loop: Loop) -> bool:
    """Say whether the loop clones models or swaps their weights, as meta-learning does."""
    swaps = ("keras.models.clone_model", "keras.Model.set_weights")
    return any(call.callee in swaps for call in loop.calls)


def learns_to_learn(step: Step) -> bool:
    """Say whether a loop around `step` takes a model's weights before it and sets them after, as Reptile does."""
    for loop in step.apply.context.all_loops:
        names = [call.callee for call in loop.calls]
        if step.apply not in loop.calls or "keras.Model.set_weights" not in names:
            continue
        here = loop.calls.index(step.apply)
        if "keras.Model.get_weights" in names[:here] and "keras.Model.set_weights" in names[here:]:
            return True
    return False


def is_tensor(value: Value | None) -> bool:
    """Say whether `value` is surely a tensor that the device computes: an op's result or arithmetic on one.

    What a loop draws from a dataset is not: it lives in host memory already. What a function that is not known
    makes of a tensor may be a number.
    """
    match value:
        case Tensor(symbolic=True):
            return False
        case Tensor(operator="variable"):
            return True
        case Tensor(origin=None, parents=parents):
            return any(is_tensor(part) for part in parents)
        case Tensor(origin=Call(callee=callee)):
            return bool(callee)
        case Subscript(base=base):
            return is_tensor(base)
        case Items(items=items):
            return any(is_tensor(item) for item in items)
        case Choice(options=options):
            return all(is_tensor(option) for option in options)
        case _:
            return False


def shows_tensor(value: Value | None) -> bool:
    """Say whether turning `value` into text or storing it needs a tensor's number: itself, or a part of it."""
    if isinstance(value, Operation) and value.operator == "format":
        return any(shows_tensor(part) for part in value.operands)
    return is_tensor(value)


#: Calls that draw another Python number each time.
_NEW_NUMBERS = (
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "random.random",
    "random.uniform",
    "random.randint",
    "random.gauss",
    "itertools.count",
)


def changes_every_round(value: Value | None, loop: Loop) -> bool:
    """Say whether `value` is a Python number that surely differs from one round of `loop` to the next.

    Loop indices, arithmetic on them, ``float(tensor)`` and clocks are; tensors and what a dataset yields are not.
    """
    match value:
        case Element(source=source, index=index):
            return _counts(source, index) and _drawn_by(loop, source)
        case Unknown(counted=counted):
            return counted is loop
        case Operation(operator="float" | "int", operands=(inner,)):
            return is_tensor(inner) or changes_every_round(inner, loop)
        case Operation(operator=operator, operands=parts) if operator in _ARITHMETIC:
            return any(changes_every_round(part, loop) for part in parts)
        case Produced(call=call) if call.callee in _FUNCTIONS:
            return any(changes_every_round(part, loop) for part in call.args)
        case Produced(call=call) if call.callee in ("builtins.min", "builtins.max"):
            # A ramp up to a limit; a bounded counter may reach it in a round or two.
            return any(_ramps(part, loop) for part in call.args)
        case Produced(call=call):
            return call.callee in _NEW_NUMBERS
        case _:
            return False


def _ramps(value: Value, loop: Loop) -> bool:
    return isinstance(value, Operation) and value.operator in ("*", "/") and changes_every_round(value, loop)


#: Functions of a number that give another float for another argument, but for a few values.
_FUNCTIONS = tuple(f"math.{name}" for name in ("cos", "sin", "tan", "exp", "log", "sqrt", "pow", "log10", "log2"))

#: Arithmetic that gives another number for another operand; a remainder or a quotient may not.
_ARITHMETIC = ("+", "-", "*", "/", "**")


def _drawn_by(loop: Loop, source: Value) -> bool:
    """Say whether `loop` is the one that draws from `source`, under ``tqdm`` or in plain sight."""
    if source is loop.iterable:
        return True
    place = source.call.location if isinstance(source, Produced) else None
    return place is not None and contains(loop.location, place)


def contains(outer: Location, inner: Location) -> bool:
    """Say whether the text of `inner` lies within that of `outer`."""
    return (
        (outer.path, outer.cell) == (inner.path, inner.cell)
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _counts(source: Value, index: int | None) -> bool:
    """Say whether member `index` of what `source` yields is a running Python integer."""
    if not isinstance(source, Produced):
        return False
    if source.callee == "builtins.enumerate":
        return index == 0
    return source.callee in ("builtins.range", "itertools.count")


def arguments_of(call: Call) -> tuple[Value, ...]:
    """Return all arguments of `call`."""
    return (*call.args, *call.kwargs.values())


def differs_by_round(values: Iterable[Value], loop: Loop) -> bool:
    """Say whether one of `values` may change from round to round: drawn by `loop`, made in it, or not known."""
    for value in values:
        for part in walk(value):
            if isinstance(part, (Unknown, Parameter)):
                return True
            if isinstance(part, Element) and part.source is loop.iterable:
                return True
            if isinstance(part, Produced) and loop in part.call.context.all_loops:
                return True
    return False


def is_memoised(made: Call) -> bool:
    """Say whether what `made` makes may be kept: a cache decorates a function on the way, or an ``if`` is around.

    The text of the branch counts, not its outcome: ``if self.step is None`` holds in the first round alone.
    """
    activations = made.context.activations
    cached = any(
        "cache" in ast.unparse(decorator)
        for frame in activations
        for decorator in getattr(frame.function.node, "decorator_list", ())
    )
    if cached or not activations:
        return cached
    function = activations[0].function
    branches = (part for part in ast.walk(function.node) if isinstance(part, ast.If))
    return any(contains(function.module.location(branch), made.location) for branch in branches)


def epoch_functions(program: Program) -> set[Call]:
    """Return the makings of the graph functions that loop inside: one call of theirs is many steps."""
    found = set()
    inside = program.calls_within(lambda context: bool(context.region and context.loops))
    for context in {id(call.context): call.context for call in inside}.values():
        looped = False
        for frame in context:
            if isinstance(frame, Loop):
                looped = looped or frame.count is None or frame.count > STEPS_IN_ONE
            elif isinstance(frame, Region):
                if looped and isinstance(frame.owner, GraphFunction):
                    found.add(frame.owner.made)
                break
    return found


def outermost_per_line(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield one call a line: the one whose text reaches furthest, as a statement is one place."""
    best: dict[tuple[str, int | None, int], Call] = {}
    for call in calls:
        place = call.location
        key = (place.path, place.cell, place.line)
        kept = best.get(key)
        if kept is None or _reach(place) > _reach(kept.location):
            best[key] = call
    yield from best.values()


def _reach(place: Location) -> tuple[int, int, int]:
    return (place.end_line, place.end_column, -place.column)


def in_scope_of(context: Context, kind: str) -> bool:
    """Say whether a ``with`` block of `kind` is around, across callers."""
    return any(isinstance(frame, Scope) and frame.kind == kind for frame in context)


def judge_eager(evidence: Evidence) -> Judgement | None:
    """Judge "the step runs op by op" by the ops that Python executed one by one; None where they were not counted.

    On a GPU the gain is bounded by the time the GPU idles; on a CPU the share holds the ops' own work too and
    is an upper bound.
    """
    eager = evidence.eager
    if eager is None:
        return None
    count = Measure("eager_ops_per_step", round(eager.ops_per_step, 1))
    if eager.ops_per_step < FEW_EAGER_OPS:
        return Judgement(Verdict.REFUTED, (count, Measure("eager_share", round(eager.share, 4))))
    busy = evidence.gpu_busy_share
    if busy is None:
        return weigh(eager.share, "eager_share", "trace: eager ops, upper bound", count)
    return weigh(min(eager.share, 1.0 - busy), "eager_share", "trace: eager ops while the GPU idles", count)
