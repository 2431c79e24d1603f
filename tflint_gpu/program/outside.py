"""Python's own functions and containers, command-line options and the environment."""

from __future__ import annotations

import ast
import math
import posixpath
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import (
    datasets,
    folding,
    functional,
    imports,
    kinds,
    loops,
    options,
    reflection,
)
from tflint_gpu.program.names import canonical
from tflint_gpu.program.questions import constant, options_of
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Const,
    Dataset,
    External,
    Generator,
    Items,
    Mapping,
    Operation,
    Produced,
    Super,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine

Handler = Callable[["Machine", "State", "Site"], "Value | None"]

_NAMESPACES = frozenset(
    """
    types.SimpleNamespace argparse.Namespace collections.OrderedDict builtins.dict
    ml_collections.ConfigDict ml_collections.config_dict.ConfigDict easydict.EasyDict
    """.split()
)


_FLAGS = ("absl.flags.DEFINE_", "tf.compat.v1.flags.DEFINE_", "tf.app.flags.DEFINE_", "tf.flags.DEFINE_")


def knows(name: str) -> bool:
    """Say whether `known` may know what calling `name` gives."""
    return name in _HANDLERS or name in _NAMESPACES or name.startswith(_FLAGS)


def known(machine: Machine, state: State, name: str, site: Site) -> Value | None:
    """Return what calling `name` gives where that folds or has a meaning of its own; else None."""
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(machine, state, site)
    if name in _NAMESPACES:
        return _namespace(site)
    if name.startswith(_FLAGS):
        return options.define_flag(machine, name, site)
    return None


# --- folding


def _fold(function: Callable[..., Any]) -> Handler:
    def handler(machine: Machine, state: State, site: Site) -> Value | None:
        if site.kwargs or site.open or not site.args or not all(isinstance(a, Const) for a in site.args):
            return None
        try:
            result = function(*(constant(argument) for argument in site.args))
        except Exception:
            return None
        if not folding.fits(result):
            return None
        return Const(result, any(a.soft for a in site.args if isinstance(a, Const)))

    return handler


def _cast(name: str, function: Callable[..., Any]) -> Handler:
    """``float(x)`` and kin: folded on literals, noted on tensors, where they wait for the device."""
    fold = _fold(function)

    def handler(machine: Machine, state: State, site: Site) -> Value | None:
        folded = fold(machine, state, site)
        if folded is not None:
            return folded
        noted = machine.record(f"builtins.{name}", site, state)
        return Operation(name, site.args) if name != "bool" else Produced(noted)

    return handler


def _len(machine: Machine, state: State, site: Site) -> Value | None:
    match site.args:
        case (Items(items=items, complete=True),):
            return Const(len(items))
        case (Mapping(items=entries, other=None),):
            return Const(len(entries))
        case (Const(value=str() as text, soft=soft),):
            return Const(len(text), soft)
        case _:
            return Operation("len", site.args)


def _join_path(machine: Machine, state: State, site: Site) -> Value | None:
    if all(isinstance(argument, Const) for argument in site.args) and site.args:
        try:
            joined = posixpath.join(*(str(constant(argument)) for argument in site.args))
        except TypeError:
            return None
        if not folding.fits(joined):
            return Unknown("a long path")
        return Const(joined, any(a.soft for a in site.args if isinstance(a, Const)))
    return Operation("path", site.args)


def _path(machine: Machine, state: State, site: Site) -> Value | None:
    return _join_path(machine, state, site) if site.args else Const(".", soft=True)


# --- Python's functions


def _super(machine: Machine, state: State, site: Site) -> Value | None:
    here: State | None = state
    while here is not None and (here.function is None or here.function.owner is None):
        here = here.parent
    if here is None or here.function is None or here.function.owner is None:
        return Unknown("super")
    spec = here.function.node.args
    first = next((parameter.arg for parameter in (*spec.posonlyargs, *spec.args)), None)
    instance = here.names.get(first) if first else None
    return Super(here.function.owner, instance if instance is not None else Unknown("self"))


def _enumerate(machine: Machine, state: State, site: Site) -> Value | None:
    if site.args and isinstance(site.args[0], Items) and site.args[0].complete:
        source = site.args[0]
        pairs = [Items("tuple", (Const(i), item)) for i, item in enumerate(source.items)]
        return Items("list", tuple(pairs))
    return Produced(machine.record("builtins.enumerate", site, state))


def _zip(machine: Machine, state: State, site: Site) -> Value | None:
    if site.args and all(isinstance(argument, Items) and argument.complete for argument in site.args):
        columns = [argument.items for argument in site.args if isinstance(argument, Items)]
        return Items("list", tuple(Items("tuple", row) for row in zip(*columns, strict=False)))
    return Produced(machine.record("builtins.zip", site, state))


def _next(machine: Machine, state: State, site: Site) -> Value | None:
    noted = machine.record("builtins.next", site, state)
    if not site.args:
        return Unknown("next")
    source = loops.drawn_from(site.args[0])
    if any(isinstance(option, Dataset) for option in options_of(source)):
        machine.draws.append((source, noted))
    element = loops.element_of(machine, state, site.args[0])
    if any(isinstance(option, Generator) for option in options_of(source)):
        datasets.note_element(machine, noted, element)
    return element


def _map(machine: Machine, state: State, site: Site) -> Value | None:
    if len(site.args) < 2:
        return None
    lists = [argument.items for argument in site.args[1:] if isinstance(argument, Items) and argument.complete]
    if len(lists) == len(site.args) - 1 and max(map(len, lists)) <= loops.MAX_UNROLL:
        rows = zip(*lists, strict=False)
        return Items(
            "list", tuple(machine.call(site.args[0], Site(site.location, row, {}), state) for row in rows)
        )
    arguments = tuple(loops.element_of(machine, state, argument) for argument in site.args[1:])
    result = machine.call(site.args[0], Site(site.location, arguments, {}), state)
    return Items("list", (result,), complete=False)


def _gather(machine: Machine, state: State, site: Site) -> Value | None:
    return None if site.open else Items("list", site.args)


def _pow(machine: Machine, state: State, site: Site) -> Value | None:
    return folding.binary(ast.Pow(), *site.args) if len(site.args) == 2 else None


def _fold_list(function: Callable[..., Any]) -> Handler:
    """``sum`` and kin: folded over a list of literals, or over literals one by one."""
    single = _fold(function)

    def handler(machine: Machine, state: State, site: Site) -> Value | None:
        match site.args:
            case (Items(items=items, complete=True),) if all(isinstance(item, Const) for item in items):
                numbers = [constant(item) for item in items]
                return single(machine, state, replace(site, args=(Const(numbers),)))
            case _:
                return single(machine, state, site)

    return handler


def _opaque(machine: Machine, state: State, site: Site) -> Value | None:
    return Unknown("depends on the run")


def _import_module(machine: Machine, state: State, site: Site) -> Value | None:
    name = constant(site.args[0]) if site.args else None
    if not isinstance(name, str):
        return Unknown("import")
    below = name.lstrip(".")
    inside = imports.import_module(machine, state.module, len(name) - len(below), below)
    if inside is None:
        return Unknown("import") if below != name else External(canonical(name))
    return inside


def _namespace(site: Site) -> Value:
    mapping = Mapping(dict(site.kwargs), Unknown("**kwargs") if site.open else None)
    for argument in site.args:
        if isinstance(argument, Mapping):
            mapping.items.update(argument.items)
        elif isinstance(argument, Items) and argument.complete:
            for pair in argument.items:
                if isinstance(pair, Items) and len(pair.items) == 2:
                    folding.store_item(mapping, *pair.items)
        else:
            mapping.other = Unknown("dict of unknown")
    return mapping


def _default_dict(machine: Machine, state: State, site: Site) -> Value | None:
    return Mapping({}, Unknown("default"))


# --- environment and options


def method_of_produced(machine: Machine, state: State, base: Produced, name: str, site: Site) -> Value | None:
    """A method of something that a call outside returned, where it has a meaning of its own; else None."""
    known_parser = machine.parsers.get(id(base))
    if known_parser is not None:
        return options.parser_method(machine, base, known_parser[1], name, site)
    if base.callee in ("tf.GradientTape", "tf.Variable"):
        noted = machine.record(f"{base.callee}.{name}", site, state, receiver=base)
        return Tensor(noted, parents=(base, *site.args)) if name != "numpy" else Produced(noted)
    return None


# --- containers


_HANDLERS: dict[str, Handler] = {
    "builtins.super": _super,
    "builtins.len": _len,
    "builtins.int": _cast("int", int),
    "builtins.float": _cast("float", float),
    "builtins.bool": _cast("bool", bool),
    "builtins.str": _cast("str", str),
    "builtins.min": _fold_list(min),
    "builtins.max": _fold_list(max),
    "builtins.sum": _fold_list(sum),
    "math.prod": _fold_list(math.prod),
    "builtins.setattr": reflection.set_attribute,
    "builtins.type": reflection.type_of,
    "builtins.vars": reflection.variables_of,
    "builtins.locals": reflection.variables_of,
    "builtins.globals": reflection.global_names,
    "dataclasses.replace": reflection.replaced,
    "dataclasses.asdict": reflection.as_dict,
    "collections.namedtuple": reflection.named_tuple,
    "asyncio.gather": _gather,
    **{f"numpy.{kind}": _fold(int) for kind in ("int8", "int16", "int32", "int64", "uint8")},
    "numpy.ceil": _fold(math.ceil),
    "numpy.floor": _fold(math.floor),
    "builtins.abs": _fold(abs),
    "builtins.round": _fold(round),
    "builtins.pow": _pow,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.map": _map,
    "builtins.getattr": reflection.get_attribute,
    "builtins.isinstance": kinds.is_instance,
    "builtins.hasattr": _opaque,
    "functools.partial": functional.partial,
    "functools.partialmethod": functional.partialmethod,
    "functools.reduce": functional.reduce,
    "typer.Option": functional.default_of,
    "typer.Argument": functional.default_of,
    "functools.wraps": functional.wraps,
    "importlib.import_module": _import_module,
    "builtins.__import__": _import_module,
    "collections.defaultdict": _default_dict,
    "os.path.join": _join_path,
    "tf.io.gfile.join": _join_path,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "os.path.exists": _opaque,
    "os.environ.get": options.get_environment,
    "os.getenv": options.get_environment,
    "os.environ.setdefault": options.set_environment,
    "os.putenv": options.set_environment,
    "os.environ.update": options.update_environment,
    "argparse.ArgumentParser": options.parser,
    "math.ceil": _fold(math.ceil),
    "math.floor": _fold(math.floor),
}
