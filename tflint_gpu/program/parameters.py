"""Arguments → variables: what a function of the project starts with, whoever calls it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import joins, objects
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import Class, Function, Items, Mapping, Parameter, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


@dataclass(frozen=True, slots=True)
class _Signature:
    """What the text of a function says of its parameters; `names` are all but ``*args`` and ``**kwargs``."""

    positional: tuple[str, ...]
    parameters: tuple[ast.arg, ...]
    names: frozenset[str]
    defaults: dict[str, ast.expr]
    vararg: str
    kwarg: str


def _signature_of(node: Any) -> _Signature:
    """Return the signature of a function or lambda, read from its text once."""
    known = getattr(node, "signature", None)
    if known is None:
        spec: ast.arguments = node.args
        positional = [*spec.posonlyargs, *spec.args]
        parameters = (*positional, *spec.kwonlyargs)
        last = positional[len(positional) - len(spec.defaults) :]
        defaults = {parameter.arg: text for parameter, text in zip(last, spec.defaults, strict=True)}
        only_named = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        defaults.update({parameter.arg: text for parameter, text in only_named if text is not None})
        known = node.signature = _Signature(
            tuple(parameter.arg for parameter in positional),
            parameters,
            frozenset(parameter.arg for parameter in parameters),
            defaults,
            spec.vararg.arg if spec.vararg else "",
            spec.kwarg.arg if spec.kwarg else "",
        )
    assert isinstance(known, _Signature)
    return known


def bind_arguments(
    machine: Machine,
    function: Function,
    args: Sequence[Value],
    kwargs: dict[str, Value],
    state: State,
    *,
    open_call: bool,
    alone: bool,
) -> None:
    """Set the parameters of `function` in `state`; for `open_call` and `alone` see `Machine.follow`."""
    signature = _signature_of(function.node)
    given = (function.bound, *args) if function.bound is not None and function.kind != "static" else args
    names = state.names
    names.update(zip(signature.positional, given, strict=False))
    if signature.vararg:
        rest = tuple(given[len(signature.positional) :])
        names[signature.vararg] = Items("tuple", rest, complete=not open_call)
    if kwargs:
        names.update({name: value for name, value in kwargs.items() if name in signature.names})
    if signature.kwarg:
        others = {name: value for name, value in kwargs.items() if name not in signature.names}
        names[signature.kwarg] = Mapping(others, Unknown("**kwargs") if open_call or alone else None)
    for parameter in signature.parameters:
        name = parameter.arg
        if name in names:
            continue
        if open_call:
            names[name] = Unknown("passed by ** or *")
        elif name in function.options:
            names[name] = function.options[name]
        elif name in signature.defaults:
            value = machine.evaluate(signature.defaults[name], _around(function, state))
            names[name] = joins.soften(value) if alone else value
        else:
            names[name] = _promised(machine, parameter, function, state)


def _promised(machine: Machine, parameter: ast.arg, function: Function, state: State) -> Value:
    """Return a value for an argument that nobody passes: what its annotation promises, if it says anything."""
    annotation = parameter.annotation
    if annotation is None:
        return Parameter(parameter.arg)
    if isinstance(annotation, ast.Constant):
        return Parameter(parameter.arg, str(annotation.value))
    kind = machine.evaluate(annotation, _around(function, state))
    if isinstance(kind, Class) and objects.is_record(kind):
        site = Site(kind.location, (), {}, open=True)
        return objects.instantiate(machine, state, kind, site, alone=True)
    return objects.promised(machine, parameter.arg, kind, function.module.location(annotation))


def _around(function: Function, state: State) -> State:
    """Return the state that the text of a function's parameters is read in: that around the function."""
    return function.closure or State(function.module, function.module.names, "", state.context)
