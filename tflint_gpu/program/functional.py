"""Functions of ``functools``, and options that a decorator hands to a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import joins, loops
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import Const, Function, Items, Partial, Produced, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine

#: Decorators that pass a command line's option on.
_OPTIONS = ("click.option", "click.argument", "rich_click.option")


def partial(machine: Machine, state: State, site: Site) -> Value | None:
    """``functools.partial(f, …)``."""
    if not site.args:
        return None
    function, *args = site.args
    if isinstance(function, Partial):
        return Partial(function.function, (*function.args, *args), {**function.kwargs, **site.kwargs})
    return Partial(function, tuple(args), dict(site.kwargs))


def partialmethod(machine: Machine, state: State, site: Site) -> Value | None:
    """``functools.partialmethod(f, …)`` in the body of a class."""
    if not site.args or not isinstance(site.args[0], Function):
        return None
    return Partial(site.args[0], tuple(site.args[1:]), dict(site.kwargs), method=True)


def wraps(machine: Machine, state: State, site: Site) -> Value | None:
    """``functools.wraps(f)``: it copies the name and the text of `f`, and does not call it."""
    return Produced(machine.record("functools.wraps", site, state))


def reduce(machine: Machine, state: State, site: Site) -> Value | None:
    """``functools.reduce(function, items[, initial])`` over a list whose items are known, each in its turn."""
    if site.kwargs or site.open or not 2 <= len(site.args) <= 3:
        return Unknown("reduce")
    function, items, *initial = site.args
    if not isinstance(items, Items) or not items.complete or len(items.items) > loops.MAX_UNROLL:
        return Unknown("reduce")
    rest = (*initial, *items.items)
    if not rest:
        return Unknown("reduce of nothing")
    value = rest[0]
    for item in rest[1:]:
        value = machine.call(function, Site(site.location, (value, item), {}), state)
    return value


def give_option(function: Function, option: Call) -> None:
    """Note what ``@click.option("--size", default=32)`` passes to `function` unless the user says otherwise."""
    if option.callee not in _OPTIONS:
        return
    names = [name for name in map(constant, option.args) if isinstance(name, str)]
    own = next((name for name in names if not name.startswith("-")), None)
    long = next((name for name in names if name.startswith("--")), own or "")
    parameter = (own or long.partition("/")[0]).lstrip("-").replace("-", "_").lower()
    default = option.kwargs.get("default")
    if default is None and option.constant("is_flag") is True:
        default = Const(False)
    function.options[parameter] = joins.soften(default) if default is not None else Unknown("option")


def default_of(machine: Machine, state: State, site: Site) -> Value | None:
    """``typer.Option(32, …)``: what the parameter is unless the user says otherwise."""
    default = site.args[0] if site.args else site.kwargs.get("default")
    if default is None or (isinstance(default, Const) and default.value is ...):
        return Unknown("a required option")
    return joins.soften(default)
