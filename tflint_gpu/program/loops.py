"""Loops and comprehensions: what they draw, how often, and what goes on inside."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from tflint_gpu.program import assignment, attributes, branches, joins, training
from tflint_gpu.program.context import Guard, Loop
from tflint_gpu.program.questions import constant, options_of
from tflint_gpu.program.values import (
    Choice,
    Const,
    Dataset,
    Element,
    Function,
    Generator,
    GraphFunction,
    Instance,
    Items,
    Mapping,
    Operation,
    Partial,
    Produced,
    Subscript,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import State

#: Loops over literal collections up to this length are followed element by element.
MAX_UNROLL = 8


def run_for(machine: Machine, state: State, node: ast.For | ast.AsyncFor) -> None:
    """Follow a ``for``: round by round over a short literal collection, else one round that stands for all."""

    iterable = machine.evaluate(node.iter, state)
    rounds, count = rounds_of(iterable)
    loop = Loop(state.module.location(node.iter), "for", drawn_from(iterable), count, unrolled=rounds is not None)

    def body() -> None:
        for element in rounds if rounds is not None else [_stand_in(element_of(machine, state, iterable))]:
            assignment.assign(machine, state, node.target, element)
            machine.execute(node.body, state)
            state.ended = False

    certain = bool(rounds) or bool(count) or (isinstance(iterable, Items) and bool(iterable.items))
    _run(machine, state, loop, node, body, certain=certain, unrolled=rounds is not None)
    machine.execute(node.orelse, state)


def _stand_in(element: Value) -> Value:
    """Return what a round that stands for all may draw: one of several functions would do only its own part."""
    functions = any(isinstance(option, Function | Partial | GraphFunction) for option in options_of(element))
    return Unknown("functions in turn") if functions else element


def run_while(machine: Machine, state: State, node: ast.While) -> None:
    """Follow one round of a ``while``."""
    loop = Loop(state.module.location(node.test), "while")

    def body() -> None:
        branches.test(machine, state, node.test)
        machine.execute(node.body, state)
        state.ended = False

    _run(machine, state, loop, node, body, certain=isinstance(node.test, ast.Constant), unrolled=False)
    machine.execute(node.orelse, state)


def _run(
    machine: Machine,
    state: State,
    loop: Loop,
    node: ast.For | ast.AsyncFor | ast.While,
    body: Callable[[], None],
    *,
    certain: bool,
    unrolled: bool,
) -> None:

    before = dict(state.names)
    if not unrolled:
        for name in assigned_in(node):
            old = state.names.get(name)
            if isinstance(old, Const) or (isinstance(old, Unknown) and old.number):
                number = isinstance(old, Unknown) or type(constant(old)) in (int, float)
                counted = loop if number and name in counted_in(node) else None
                state.names[name] = Unknown("changes in a loop", number, counted)
            elif isinstance(old, Items):
                state.names[name] = Items(old.kind, old.items, complete=False)
            elif isinstance(old, Tensor):
                state.names[name] = Tensor(symbolic=old.symbolic, parents=(old,))
    outer = state.context
    with_calls = open_loop(machine, state, loop)
    state.context = outer.inside(loop)
    body()
    state.context = outer
    close_loop(machine, state, loop, with_calls)
    if not certain:
        branches.join_into(state.names, before)


def assigned_in(node: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """Return the plain names that the body of a loop assigns."""
    known = getattr(node, "assigned", None)
    if known is None:
        known = frozenset(
            part.id
            for statement in node.body
            for part in nodes_of(statement)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        )
        node.assigned = known  # type: ignore[union-attr]
    return known


def counted_in(node: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """Return the names that every round of a loop counts on: ``step += 1``, ``rate = rate * 0.9``."""
    found = set()
    for statement in node.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
            read = {part.id for part in nodes_of(statement.value) if isinstance(part, ast.Name)}
            found |= read & {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def open_loop(machine: Machine, state: State, loop: Loop) -> tuple[int, int]:
    """Enter `loop` in the views; return the marks that `close_loop` wants."""
    loop.qualname = state.qualname
    if not machine.muted:
        machine.program.loops.append(loop)
    return len(machine.program.calls), len(machine.program.runs)


def close_loop(machine: Machine, state: State, loop: Loop, marks: tuple[int, int]) -> None:
    """Hand `loop` the calls of its body and settle what its dataset is used for."""
    first_call, first_run = marks
    loop.calls = machine.program.calls[first_call:]
    if isinstance(loop.iterable, Dataset | Choice) and not machine.muted:
        runs = machine.program.runs[first_run:]
        if not any(run.loop is loop for run in runs):
            training.note_loop_over_data(machine, state, loop)


def rounds_of(iterable: Value) -> tuple[list[Value] | None, int | None]:
    """Return the elements to follow one by one (None: one round stands for all) and the number of rounds."""
    match iterable:
        case Items(items=items, complete=True):
            plain = all(isinstance(item, Const) and not isinstance(item.value, str) for item in items)
            return (None if plain or len(items) > MAX_UNROLL else list(items)), len(items)
        case Mapping(items=entries, other=None):
            keys = [Const(key) for key in entries]
            return (None if len(keys) > MAX_UNROLL else list(keys)), len(keys)
        case Produced(call=call) if call.callee == "builtins.range":
            bounds = [constant(argument) for argument in call.args]
            try:
                return None, len(range(*bounds))
            except TypeError:
                return None, None
        case Produced(call=call) if call.callee in ("builtins.enumerate", "builtins.reversed") and call.args:
            return None, rounds_of(call.args[0])[1]
        case Produced(call=call) if call.callee == "builtins.zip" and call.args:
            counts = [count for _, count in map(rounds_of, call.args) if count is not None]
            return None, min(counts, default=None)
        case Produced(call=call) if call.callee in _DRAWS:
            count = constant(call.argument(*_DRAWS[call.callee]))
            return None, count if type(count) is int and count >= 0 else None
        case Subscript(key=key) | Tensor(origin=None, parents=(_, key)):
            return None, _length_of_slice(key)
        case _:
            return None, None


#: Calls that hand out a number of members, with the argument that says how many.
_DRAWS = {
    "random.sample": ("k", 1),
    "random.choices": ("k", 1),
    "numpy.random.choice": ("size", 1),
    "numpy.random.randint": ("size", 2),
    "itertools.islice": ("stop", 1),
}


def _length_of_slice(key: Value) -> int | None:
    """Return how many members ``x[a:b]`` has at most, None where the bounds are not literal or not of one end."""
    if not isinstance(key, Operation) or key.operator != "slice":
        return None
    start, stop, step = (constant(bound) for bound in key.operands)
    first = start or 0
    if step not in (None, 1) or type(first) is not int or any(not isinstance(b, Const) for b in key.operands):
        return None
    if stop is None:
        return -first if first < 0 else None
    same_end = type(stop) is int and (stop < 0) == (first < 0)
    return max(0, stop - first) if same_end else None


def drawn_from(iterable: Value) -> Value:
    """Return the dataset behind ``enumerate``, ``zip`` and kin, or the iterable itself."""
    if isinstance(iterable, Produced) and iterable.callee in (
        "builtins.enumerate",
        "builtins.zip",
        "itertools.islice",
        "itertools.chain",
        "itertools.cycle",
    ):
        for argument in iterable.call.args:
            inner = drawn_from(argument)
            if any(isinstance(option, Dataset) for option in options_of(inner)):
                return inner
    return iterable


def element_of(machine: Machine, state: State, iterable: Value) -> Value:
    """Return what one round of a loop over `iterable` is given."""
    match iterable:
        case Dataset():
            return Tensor(parents=(Element(iterable),))
        case Items(items=items) if items:
            return joins.join_all(items)
        case Mapping(items=entries) if entries:
            return joins.join_all(Const(key) for key in entries)
        case Tensor(symbolic=symbolic):
            return Tensor(symbolic=symbolic, parents=(iterable,))
        case Produced(call=call) if call.callee == "builtins.enumerate" and call.args:
            return Items("tuple", (Element(iterable, 0), element_of(machine, state, call.args[0])))
        case Produced(call=call) if call.callee == "builtins.zip":
            return Items("tuple", tuple(element_of(machine, state, argument) for argument in call.args))
        case Produced(call=call) if call.callee in ("itertools.islice", "itertools.cycle") and call.args:
            return element_of(machine, state, call.args[0])
        case Generator():
            return machine.draw(iterable, state.context)
        case Instance():
            return _element_of_instance(machine, state, iterable)
        case Choice(options=options):
            return joins.join_all(element_of(machine, state, option) for option in options)
        case Unknown():
            return iterable
        case _:
            return Element(iterable)


def _element_of_instance(machine: Machine, state: State, instance: Instance) -> Value:
    for name in ("__iter__", "__getitem__"):
        method = attributes.attribute(machine, state, instance, name)
        if isinstance(method, Function):
            result = machine.follow(method, () if name == "__iter__" else (Unknown("index"),), {}, state.context)
            if name == "__iter__":
                return Element(result) if result is instance else element_of(machine, state, result)
            return result
    return Element(instance)


def rounds(
    machine: Machine, state: State, generators: list[ast.comprehension], node: ast.expr, body: Callable[[], None]
) -> bool:
    """Run `body` for each round of a comprehension; return whether every round was followed."""

    head, *rest = generators
    iterable = machine.evaluate(head.iter, state)
    elements, count = rounds_of(iterable)
    plain = iterable.items if isinstance(iterable, Items) and iterable.complete else ()
    if 0 < len(plain) <= MAX_UNROLL:
        elements = list(plain)  # numbers too: here every round gives an element
    outer = state.context
    loop = Loop(state.module.location(node), "comprehension", drawn_from(iterable), count)
    loop.unrolled = elements is not None
    marks = open_loop(machine, state, loop)
    complete = elements is not None and not head.ifs
    for element in elements if elements is not None else [element_of(machine, state, iterable)]:
        state.context = outer.inside(loop)
        assignment.assign(machine, state, head.target, element)
        for test in head.ifs:
            guard = Guard(state.module.location(test), "branch", None, machine.evaluate(test, state))
            state.context = state.context.inside(guard)
        if rest:
            complete = rounds(machine, state, rest, node, body) and complete
        else:
            body()
    state.context = outer
    close_loop(machine, state, loop, marks)
    return complete
