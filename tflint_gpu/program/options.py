"""Command-line options, flags and environment variables: defaults are soft, a user may override them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import joins
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Items, Mapping, Produced, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import Site, State


def get_environment(machine: Machine, state: State, site: Site) -> Value | None:
    """``os.environ.get``: the default, which the environment may override."""
    default = site.args[1] if len(site.args) > 1 else site.kwargs.get("default")
    return joins.soften(default) if default is not None else Unknown("environment")


def set_environment(machine: Machine, state: State, site: Site) -> Value | None:
    """``os.environ.setdefault`` and ``os.putenv``."""
    from tflint_gpu.program.views import Setting

    name = constant(site.args[0]) if site.args else None
    if isinstance(name, str) and len(site.args) > 1 and not machine.muted:
        machine.program.settings.append(Setting(name, site.args[1], site.location, state.qualname, state.context))
    return Const(None)


def update_environment(machine: Machine, state: State, site: Site) -> Value | None:
    """``os.environ.update``."""
    from tflint_gpu.program.views import Setting

    for argument in site.args:
        if isinstance(argument, Mapping) and not machine.muted:
            machine.program.settings.extend(
                Setting(name, value, site.location, state.qualname, state.context)
                for name, value in argument.items.items()
                if isinstance(name, str)
            )
    return Const(None)


def parser(machine: Machine, state: State, site: Site) -> Value | None:
    """``argparse.ArgumentParser()``."""
    parser = Produced(machine.record("argparse.ArgumentParser", site, state))
    machine.parsers[id(parser)] = (parser, {})
    return parser


def _add_option(options: dict[str, Value], site: Site) -> None:
    names = [constant(argument) for argument in site.args]
    long = [name for name in names if isinstance(name, str)]
    if not long:
        return
    chosen = next((name for name in long if name.startswith("--")), long[0])
    dest = constant(site.kwargs.get("dest")) or chosen.lstrip("-").replace("-", "_")
    action = constant(site.kwargs.get("action"))
    default = site.kwargs.get("default")
    if action == "store_true" and default is None:
        default = Const(False)
    elif action == "store_false" and default is None:
        default = Const(True)
    elif default is None:
        default = Const(None) if chosen.startswith("-") else Unknown("required argument")
    options[dest] = joins.soften(default)


def define_flag(machine: Machine, name: str, site: Site) -> Value:
    """``flags.DEFINE_integer(…)`` and kin of absl."""
    flag = constant(site.args[0]) if site.args else constant(site.kwargs.get("name"))
    default = site.args[1] if len(site.args) > 1 else site.kwargs.get("default", Const(None))
    value = joins.soften(default)
    if isinstance(flag, str):
        machine.flags[flag] = value
    return Mapping({"value": value, "default": value})


def parser_method(
    machine: Machine, parser: Produced, options: dict[str, Value], name: str, site: Site
) -> Value | None:
    """A method of an argument parser."""
    if name == "add_argument":
        _add_option(options, site)
        return Unknown("action")
    if name == "set_defaults":
        options.update({key: joins.soften(value) for key, value in site.kwargs.items()})
        return Const(None)
    if name in ("parse_args", "parse_intermixed_args"):
        return Mapping(dict(options))
    if name in ("parse_known_args", "parse_known_intermixed_args"):
        return Items("tuple", (Mapping(dict(options)), Unknown("rest")))
    if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
        group = Produced(parser.call)
        machine.parsers[id(group)] = (group, options)
        return group
    return Unknown(f"parser.{name}")
