"""Branches of unknown outcome: every arm runs from the same start, what they leave is joined."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.program import joins
from tflint_gpu.program.context import Guard
from tflint_gpu.program.questions import walk
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import Const, Operation, Tensor, Value
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


_DEBUG = re.compile(r"debug|verbos|profil|trace|eager|dry_?run|sanity|bench", re.IGNORECASE)


def branch(machine: Machine, state: State, arms: list[tuple[Guard, list[ast.stmt]]]) -> None:
    """Run each arm from the same start and join what they leave."""
    start = dict(state.names)
    outer = state.context
    ends: list[dict[str, Value]] = []
    last = len(arms) - 1
    state.branches += 1
    for number, (guard, body) in enumerate(arms):
        if number:
            restore(state, start)
        state.context = outer.inside(guard)
        state.ended = False
        machine.execute(body, state)
        if not state.ended:
            ends.append(dict(state.names) if number < last else state.names)
    state.branches -= 1
    state.context = outer
    state.ended = not ends
    if not ends:
        restore(state, start)
    elif ends[0] is not state.names:
        restore(state, join_names(ends))


def restore(state: State, names: dict[str, Value]) -> None:
    """Set the variables of `state` to `names`."""
    state.names.clear()
    state.names.update(names)


def join_names(ends: list[dict[str, Value]]) -> dict[str, Value]:
    """Join the variables of several ends of control; one that an arm does not set keeps the others' value."""
    result = dict(ends[0])
    for end in ends[1:]:
        join_into(result, end)
    return result


def join_into(names: dict[str, Value], end: dict[str, Value]) -> None:
    """Let `names` hold what the variables are where control may also come from `end`."""
    for name, value in end.items():
        known = names.get(name)
        if known is not value:
            names[name] = value if known is None else joins.join(known, value)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the text of a condition says: its ``%``, whether it compares with a number, and the words in it."""

    modulo: ast.BinOp | None
    equals_number: bool
    debug: bool


def kind_of_guard(test: ast.expr, value: Value, *, positive: bool) -> tuple[str, int | None]:
    """Return the kind of guard that a branch on `test` is, and its period where that is literal."""
    facts = _facts_of(test)
    if facts.modulo is not None and (positive or test is facts.modulo):
        return "periodic", _period(facts.modulo, value)
    if positive and facts.equals_number:
        return "periodic", None
    if positive and facts.debug and not (isinstance(value, Const) and value.value):
        return "debug", None
    return "branch", None


def _facts_of(test: ast.expr) -> _Facts:
    known = getattr(test, "facts", None)
    if known is None:
        modulo = None
        debug = False
        for node in nodes_of(test):
            match node:
                case ast.BinOp(op=ast.Mod()):
                    modulo = modulo or node
                case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str() as word):
                    debug = debug or bool(_DEBUG.search(word))
        debug = debug and not isinstance(test, ast.UnaryOp)
        known = _Facts(modulo, _equals_number(test), debug)
        test.facts = known  # type: ignore[attr-defined]
    assert isinstance(known, _Facts)
    return known


def _equals_number(test: ast.expr) -> bool:
    """Say whether `test` is like ``i == 0`` or ``step == last - 1``: true once in a while."""
    match test:
        case ast.Compare(left=ast.Name(), ops=[ast.Eq()], comparators=[right]):
            return not isinstance(right, ast.Constant) or type(right.value) is int
        case _:
            return False


def _period(modulo: ast.BinOp, value: Value) -> int | None:
    """Return n of a test like ``step % n == 0``, None where it is not literal."""
    for part in walk(value):
        if isinstance(part, Operation) and part.operator == "%" and isinstance(part.operands[1], Const):
            period = part.operands[1].value
            return period if isinstance(period, int) else None
    right = modulo.right
    return right.value if isinstance(right, ast.Constant) and isinstance(right.value, int) else None


def test(machine: Machine, state: State, node: ast.expr) -> Value:
    """Evaluate a condition; one on a tensor waits for the device and is noted as a call of ``bool``."""
    value = machine.evaluate(node, state)
    if isinstance(value, Tensor) and not value.symbolic:
        machine.record("builtins.bool", Site(state.module.location(node), (value,), {}), state)
    return value
