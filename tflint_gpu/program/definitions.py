"""Functions and classes as they are defined and decorated."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.program import assignment, functional
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Attribute,
    Class,
    External,
    Function,
    GraphFunction,
    Instance,
    Partial,
    Produced,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


def define_function(machine: Machine, state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Bind a function to its name, decorated."""
    qualname = f"{state.qualname}.{node.name}" if state.qualname else node.name
    location = state.module.location(node)
    function = Function(node.name, qualname, state.module, location, node, state.closure())
    machine.defined.append(function)
    value: Value = function
    for decorator in reversed(node.decorator_list):
        value = decorate(machine, state, value, machine.evaluate(decorator, state), decorator, function)
    if isinstance(value, Attribute):  # the property stands
        if value.name == "setter" and isinstance(value.base, Function):
            value.base.setter = function
        return
    assignment.set_name(state, node.name, value)


def decorate(
    machine: Machine, state: State, value: Value, decorator: Value, node: ast.expr, function: Function
) -> Value:
    """Return `value` as `decorator` leaves it; a decorator that is not known leaves it as it is."""
    match decorator:
        case External(name="builtins.staticmethod"):
            function.kind = "static"
        case External(name="builtins.classmethod"):
            function.kind = "class"
        case External(name="builtins.property" | "functools.cached_property"):
            function.kind = "property"
        case Attribute(name="setter" | "deleter" | "getter"):
            return decorator
        case Produced(call=call):
            functional.give_option(function, call)
        case External(name="tf.function") | Partial() | Function() | Instance() | Class():
            result = machine.call(decorator, Site(state.module.location(node), (value,), {}), state)
            if isinstance(result, Function | GraphFunction | Partial | Class):
                return result
            if isinstance(result, Instance) and result.cls.find("__call__") is not None:
                return result
    return value


def define_class(machine: Machine, state: State, node: ast.ClassDef) -> None:
    """Run a class body and bind the class to its name."""
    qualname = f"{state.qualname}.{node.name}" if state.qualname else node.name
    bases = tuple(machine.evaluate(base, state) for base in node.bases)
    cls = Class(node.name, qualname, state.module, state.module.location(node), node, bases)
    body = State(
        state.module, cls.members, qualname, state.context, parent=state, function=state.function, is_class=True
    )
    machine.execute(node.body, body)
    for member_value in cls.members.values():
        inner = member_value.function if isinstance(member_value, GraphFunction) else member_value
        for method in (inner, inner.setter) if isinstance(inner, Function) else ():
            if method is not None and method.owner is None:
                method.owner = cls
    machine.defined.append(cls)
    assignment.set_name(state, node.name, _decorated(machine, state, cls, node))


def _decorated(machine: Machine, state: State, cls: Class, node: ast.ClassDef) -> Value:
    """Return a class as its decorators leave it; those of the project are run, they may register it."""
    value: Value = cls
    for decorator in reversed(node.decorator_list):
        function = machine.evaluate(decorator, state)
        if isinstance(function, Function | Partial | Instance):
            result = machine.call(function, Site(state.module.location(decorator), (value,), {}), state)
            value = result if isinstance(result, Class) else value
    return value
