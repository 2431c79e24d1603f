"""Project functions that are handed to code outside: it calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.findings import Location
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import Choice, Function, GraphFunction, Partial, Tensor, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


def without_first(site: Site) -> Site:
    """Return `site` less its first argument: the object of a method that is called through its class."""
    return Site(site.location, site.args[1:], site.kwargs, site.open)


def follow_arguments(machine: Machine, state: State, site: Site) -> None:
    """Follow project functions that are handed to code outside: they are called from there."""
    for argument in (*site.args, *site.kwargs.values()):
        if not isinstance(argument, Function | Partial | GraphFunction | Choice):
            continue
        for option in options_of(argument):
            if isinstance(option, Function | Partial | GraphFunction):
                call_back(machine, state, option, site.location)


def call_back(machine: Machine, state: State, function: Value, location: Location) -> Value:
    """Call `function` as outside code would: with tensors in traced code, with unknown values elsewhere."""
    traced = state.context.in_graph
    arguments = tuple(
        Tensor() if traced else Unknown("argument of a callback") for _ in range(required_arguments(function))
    )
    return machine.call(function, Site(location, arguments, {}), state)


def required_arguments(function: Value) -> int:
    """Return how many positional arguments a project function needs beside those already bound."""
    match function:
        case Partial(function=inner, args=args, kwargs=kwargs):
            return max(0, required_arguments(inner) - len(args) - len(kwargs))
        case GraphFunction(function=inner):
            return required_arguments(inner)
        case Function(node=node, bound=bound, kind=kind):
            spec = node.args
            total = len(spec.posonlyargs) + len(spec.args) - len(spec.defaults)
            return max(0, total - (1 if bound is not None and kind != "static" else 0))
        case _:
            return 1
