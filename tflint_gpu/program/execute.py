"""Statements: how variables change and where control can go."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import (
    assignment,
    attributes,
    branches,
    definitions,
    folding,
    imports,
    joins,
    loops,
    patterns,
)
from tflint_gpu.program.context import Guard, Scope
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import (
    Const,
    Dataset,
    Function,
    Generator,
    Instance,
    Items,
    Produced,
    Unknown,
    Value,
)
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import State


def ignore(_machine: Machine, _state: State, _node: ast.stmt) -> None:
    """Pass over a statement that changes nothing the views care for."""


def give_up(state: State, node: ast.stmt) -> None:
    """Leave `node`, which nests deeper than Python recurses: what it would have set is unknown."""
    for part in nodes_of(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            state.names[part.id] = Unknown("nested too deeply")


# --- assignment


def _assign(machine: Machine, state: State, node: ast.Assign) -> None:
    value = machine.evaluate(node.value, state)
    for target in node.targets:
        assignment.assign(machine, state, target, value)


def _annotated(machine: Machine, state: State, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assignment.assign(machine, state, node.target, machine.evaluate(node.value, state))


def _augmented(machine: Machine, state: State, node: ast.AugAssign) -> None:
    old = machine.evaluate(node.target, state)
    value = folding.binary(node.op, old, machine.evaluate(node.value, state))
    if isinstance(node.target, ast.Attribute | ast.Subscript) and isinstance(value, Const):
        value = Unknown("counter")  # a counter on an object: this is only one of its values
    if isinstance(value, Items) and state.branches:
        value.complete = False  # what was added may not be there
    assignment.assign(machine, state, node.target, value)


def _delete(_machine: Machine, state: State, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.names.pop(target.id, None)


def _scope_names(_machine: Machine, state: State, node: ast.Global | ast.Nonlocal) -> None:
    state.outer_names.update(node.names)


# --- control


def _expression(machine: Machine, state: State, node: ast.Expr) -> None:
    machine.evaluate(node.value, state)


def _return(machine: Machine, state: State, node: ast.Return) -> None:
    state.returns.append(machine.evaluate(node.value, state))
    state.ended = True


def _end(_machine: Machine, state: State, _node: ast.stmt) -> None:
    state.ended = True


def _raise(machine: Machine, state: State, node: ast.Raise) -> None:
    machine.evaluate(node.exc, state)
    state.ended = True


def _assert(machine: Machine, state: State, node: ast.Assert) -> None:
    branches.test(machine, state, node.test)


def _if(machine: Machine, state: State, node: ast.If) -> None:
    test = branches.test(machine, state, node.test)
    known = joins.truth(test)
    if known is not None:
        machine.execute(node.body if known else node.orelse, state)
        return
    branches.branch(
        machine,
        state,
        [
            (machine.guard(node.test, test, state, positive=True), node.body),
            (machine.guard(node.test, test, state, positive=False), node.orelse),
        ],
    )


def _try(machine: Machine, state: State, node: ast.Try) -> None:
    start = dict(state.names)
    machine.execute(node.body, state)
    if not state.ended:
        machine.execute(node.orelse, state)
    after, ended = dict(state.names), state.ended
    outer = state.context
    for handler in node.handlers:
        branches.restore(state, {**start, **after})
        state.ended = False
        if handler.name:
            state.names[handler.name] = Unknown("exception")
        state.context = outer.inside(Guard(state.module.location(handler), "fallback"))
        state.branches += 1
        machine.execute(handler.body, state)
        state.branches -= 1
        ended = ended and state.ended
        for name, value in state.names.items():
            known = after.setdefault(name, value)
            if value is not known and isinstance(value, Dataset) and not state.ended:
                after[name] = joins.join(known, value)
    state.context = outer
    branches.restore(state, after)
    state.ended = False
    machine.execute(node.finalbody, state)
    state.ended = state.ended or ended


def _match(machine: Machine, state: State, node: ast.Match) -> None:
    subject = machine.evaluate(node.subject, state)
    location = state.module.location(node)
    arms = []
    bound: set[str] = set()
    chosen: bool | None = False
    for case in node.cases:
        named = patterns.names_in(case.pattern)
        chosen = patterns.fit(case.pattern, subject, named)
        if chosen is False:
            continue
        state.names.update({n: Unknown("matched") if n in bound else value for n, value in named.items()})
        bound.update(named)
        if case.guard is not None:
            kept = joins.truth(branches.test(machine, state, case.guard))
            if kept is False:
                continue
            chosen = chosen if kept else None
        arms.append((Guard(location, "branch", None, subject), case.body))
        if chosen:
            break
    if len(arms) == 1 and chosen:
        machine.execute(arms[0][1], state)
    elif arms:
        rest = [] if chosen else [(Guard(location, "branch", None, subject), list[ast.stmt]())]
        branches.branch(machine, state, [*arms, *rest])


def _with(machine: Machine, state: State, node: ast.With | ast.AsyncWith) -> None:
    outer = state.context
    for item in node.items:
        value = machine.evaluate(item.context_expr, state)
        entered = _entered(machine, state, value)
        if item.optional_vars is not None:
            assignment.assign(machine, state, item.optional_vars, entered)
        state.context = state.context.inside(_scope(value, state.module.location(item.context_expr)))
    machine.execute(node.body, state)
    state.context = outer


def _entered(machine: Machine, state: State, value: Value) -> Value:
    match value:
        case Generator():
            return machine.draw(value, state.context)
        case Instance():
            method = attributes.attribute(machine, state, value, "__enter__")
            if isinstance(method, Function):
                return machine.follow(method, (), {}, state.context)
            return value
        case _:
            return value


def _scope(value: Value, location: Any) -> Scope:
    for option in options_of(value):
        if isinstance(option, Produced):
            if option.callee == "tf.device":
                return Scope(location, "device", option.call.argument("device_name"))
            if option.callee == "tf.distribute.Strategy.scope":
                return Scope(location, "strategy", option.call.receiver)
            if option.callee == "tf.GradientTape":
                return Scope(location, "tape", option)
    return Scope(location, "other", value)


# --- definitions


# --- imports


STATEMENTS: dict[type, Callable[[Machine, State, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Global: _scope_names,
    ast.Nonlocal: _scope_names,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Break: _end,
    ast.Continue: _end,
    ast.If: _if,
    ast.For: loops.run_for,
    ast.AsyncFor: loops.run_for,
    ast.While: loops.run_while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: definitions.define_function,
    ast.AsyncFunctionDef: definitions.define_function,
    ast.ClassDef: definitions.define_class,
    ast.Import: imports.import_names,
    ast.ImportFrom: imports.import_from,
}
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = _try
