"""Branches of unknown outcome: every arm runs from the same start, what they leave is joined."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tflint_gpu.program import joins
from tflint_gpu.program.context import Guard
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Const,
    Operation,
    Tensor,
    Value,
    walk,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


_DEBUG = re.compile(r"debug|verbos|profil|trace|eager|dry_?run|sanity", re.IGNORECASE)


def branch(machine: Machine, state: State, arms: list[tuple[Guard, list[ast.stmt]]]) -> None:
    """Run each arm from the same start and join what they leave."""
    start = dict(state.names)
    outer = state.context
    ends: list[dict[str, Value]] = []
    state.branches += 1
    for guard, body in arms:
        restore(state, start)
        state.context = outer.inside(guard)
        state.ended = False
        machine.execute(body, state)
        if not state.ended:
            ends.append(dict(state.names))
    state.branches -= 1
    state.context = outer
    state.ended = not ends
    if ends:
        restore(state, join_names(ends))
    else:
        restore(state, start)


def restore(state: State, names: dict[str, Value]) -> None:
    """Set the variables of `state` to `names`."""
    state.names.clear()
    state.names.update(names)


def join_names(ends: list[dict[str, Value]]) -> dict[str, Value]:
    """Join the variables of several ends of control; one that an arm does not set keeps the others' value."""
    result = dict(ends[0])
    for end in ends[1:]:
        for name, value in end.items():
            known = result.get(name)
            result[name] = value if known is None or known is value else joins.join(known, value)
    return result


def kind_of_guard(test: ast.expr, value: Value, *, positive: bool) -> tuple[str, int | None]:
    """Return the kind of guard that a branch on `test` is, and its period where that is literal."""
    if positive:
        every = _period(test, value)
        if every is not None:
            return "periodic", every or None
        if _is_debug(test, value):
            return "debug", None
    elif isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod):
        return "periodic", _period(test, value) or None
    return "branch", None


def _period(test: ast.expr, value: Value) -> int | None:
    """Return n for a test like ``step % n == 0``, 0 where n is not literal, None for other tests."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            for part in walk(value):
                if isinstance(part, Operation) and part.operator == "%" and isinstance(part.operands[1], Const):
                    period = part.operands[1].value
                    return period if isinstance(period, int) else 0
            return node.right.value if _is_int(node.right) else 0  # type: ignore[attr-defined]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return 0
    return None


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_debug(test: ast.expr, value: Value) -> bool:
    if isinstance(value, Const) and value.value:
        return False
    if isinstance(test, ast.UnaryOp):
        return False
    names = [node.id for node in ast.walk(test) if isinstance(node, ast.Name)]
    names += [node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)]
    names += [str(node.value) for node in ast.walk(test) if isinstance(node, ast.Constant)]
    return any(_DEBUG.search(name) for name in names)


def matches(pattern: ast.pattern, subject: Value) -> bool | None:
    """Say whether a case pattern fits a literal subject; None where that depends on the run."""
    if (
        isinstance(pattern, ast.MatchValue)
        and isinstance(pattern.value, ast.Constant)
        and isinstance(subject, Const)
    ):
        return None if subject.soft else bool(pattern.value.value == subject.value)
    return None


def test(machine: Machine, state: State, node: ast.expr) -> Value:
    """Evaluate a condition; one on a tensor waits for the device and is noted as a call of ``bool``."""
    value = machine.evaluate(node, state)
    if isinstance(value, Tensor) and not value.symbolic:
        machine.record("builtins.bool", Site(state.module.location(node), (value,), {}), state)
    return value
