"""Python's own functions and containers, command-line options and the environment."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import attributes, folding, joins
from tflint_gpu.program.context import Activation, Loop
from tflint_gpu.program.names import canonical
from tflint_gpu.program.values import (
    Const,
    Dataset,
    External,
    Items,
    Mapping,
    Operation,
    Partial,
    Produced,
    Super,
    Tensor,
    Unknown,
    Value,
    constant,
    options_of,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine, Site, State

Handler = Callable[["Machine", "State", "Site"], "Value | None"]

_FLAG_TYPES = ("string", "integer", "float", "bool", "boolean", "enum", "list", "multi_string", "multi_integer")
_NAMESPACES = frozenset(
    """
    types.SimpleNamespace argparse.Namespace collections.OrderedDict builtins.dict
    ml_collections.ConfigDict ml_collections.config_dict.ConfigDict easydict.EasyDict
    """.split()
)


def known(machine: Machine, state: State, name: str, site: Site) -> Value | None:
    """Return what calling `name` gives where that folds or has a meaning of its own; else None."""
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(machine, state, site)
    if name in _NAMESPACES:
        return _namespace(site)
    if name.startswith(
        ("absl.flags.DEFINE_", "tf.compat.v1.flags.DEFINE_", "tf.app.flags.DEFINE_", "tf.flags.DEFINE_")
    ):
        return _define_flag(machine, name, site)
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
    from tflint_gpu.program import loops

    noted = machine.record("builtins.next", site, state)
    if not site.args:
        return Unknown("next")
    source = loops.drawn_from(site.args[0])
    if any(isinstance(option, Dataset) for option in options_of(source)):
        machine.draws.append((source, noted))
    return loops.element_of(machine, state, site.args[0])


def _map(machine: Machine, state: State, site: Site) -> Value | None:
    from tflint_gpu.program import loops
    from tflint_gpu.program.machine import Site as Place

    if len(site.args) < 2:
        return None
    arguments = tuple(loops.element_of(machine, state, argument) for argument in site.args[1:])
    result = machine.call(site.args[0], Place(site.location, arguments, {}), state)
    return Items("list", (result,), complete=False)


def _getattr(machine: Machine, state: State, site: Site) -> Value | None:
    if len(site.args) >= 2 and isinstance(constant(site.args[1]), str):
        return attributes.attribute(machine, state, site.args[0], constant(site.args[1]))
    return Unknown("getattr")


def _opaque(machine: Machine, state: State, site: Site) -> Value | None:
    return Unknown("depends on the run")


def _partial(machine: Machine, state: State, site: Site) -> Value | None:
    if not site.args:
        return None
    function, *args = site.args
    if isinstance(function, Partial):
        return Partial(function.function, (*function.args, *args), {**function.kwargs, **site.kwargs})
    return Partial(function, tuple(args), dict(site.kwargs))


def _import_module(machine: Machine, state: State, site: Site) -> Value | None:
    from tflint_gpu.program import execute

    name = constant(site.args[0]) if site.args else None
    if not isinstance(name, str):
        return Unknown("import")
    inside = execute.import_module(machine, state.module, 0, name)
    return inside if inside is not None else External(canonical(name))


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


def _get_environment(machine: Machine, state: State, site: Site) -> Value | None:
    default = site.args[1] if len(site.args) > 1 else site.kwargs.get("default")
    return joins.soften(default) if default is not None else Unknown("environment")


def _set_environment(machine: Machine, state: State, site: Site) -> Value | None:
    from tflint_gpu.program.views import Setting

    name = constant(site.args[0]) if site.args else None
    if isinstance(name, str) and len(site.args) > 1 and not machine.muted:
        machine.program.settings.append(Setting(name, site.args[1], site.location, state.qualname, state.context))
    return Const(None)


def _update_environment(machine: Machine, state: State, site: Site) -> Value | None:
    from tflint_gpu.program.views import Setting

    for argument in site.args:
        if isinstance(argument, Mapping) and not machine.muted:
            machine.program.settings.extend(
                Setting(name, value, site.location, state.qualname, state.context)
                for name, value in argument.items.items()
                if isinstance(name, str)
            )
    return Const(None)


def _parser(machine: Machine, state: State, site: Site) -> Value | None:
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


def _define_flag(machine: Machine, name: str, site: Site) -> Value:
    flag = constant(site.args[0]) if site.args else constant(site.kwargs.get("name"))
    default = site.args[1] if len(site.args) > 1 else site.kwargs.get("default", Const(None))
    value = joins.soften(default)
    if isinstance(flag, str):
        machine.flags[flag] = value
    return Mapping({"value": value, "default": value})


def method_of_produced(machine: Machine, state: State, base: Produced, name: str, site: Site) -> Value | None:
    """A method of something that a call outside returned, where it has a meaning of its own; else None."""
    known_parser = machine.parsers.get(id(base))
    if known_parser is not None:
        return _parser_method(machine, base, known_parser[1], name, site)
    if base.callee in ("tf.GradientTape", "tf.Variable"):
        noted = machine.record(f"{base.callee}.{name}", site, state, receiver=base)
        return Tensor(noted, parents=(base, *site.args)) if name != "numpy" else Produced(noted)
    return None


def _parser_method(
    machine: Machine, parser: Produced, options: dict[str, Value], name: str, site: Site
) -> Value | None:
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


# --- containers


def container_method(
    machine: Machine, state: State, base: Items | Mapping | Const, name: str, site: Site
) -> Value:
    """A method of a list, tuple, set, dict or literal."""
    match base:
        case Items():
            return _items_method(state, base, name, site)
        case Mapping():
            return _mapping_method(base, name, site)
        case _:
            return _text_method(base, name, site)


def _items_method(state: State, base: Items, name: str, site: Site) -> Value:
    if name in ("append", "add", "insert") and site.args:
        base.items = (*base.items, site.args[-1])
        base.complete = base.complete and not state.branches and not _in_loop(state) and name == "append"
    elif name in ("extend", "update") and site.args:
        other = site.args[0]
        if isinstance(other, Items):
            base.items = (*base.items, *other.items)
            base.complete = base.complete and other.complete and not state.branches and not _in_loop(state)
        else:
            base.complete = False
    elif name == "copy":
        return Items(base.kind, base.items, base.complete)
    elif name == "pop":
        base.complete = False
        return joins.join_all(base.items) if base.items else Unknown("pop")
    elif name in ("clear", "remove", "reverse", "sort", "discard"):
        base.complete = False
    return Const(None) if name in ("append", "add", "insert", "extend") else Unknown(name)


def _in_loop(state: State) -> bool:
    for frame in state.context:
        if isinstance(frame, Activation):
            return False
        if isinstance(frame, Loop):
            return True
    return False


def _mapping_method(base: Mapping, name: str, site: Site) -> Value:
    complete = base.other is None
    if name == "items":
        pairs = [Items("tuple", (Const(key), value)) for key, value in base.items.items()]
        if base.other is not None:
            pairs.append(Items("tuple", (Unknown("key"), base.other)))
        return Items("list", tuple(pairs), complete)
    if name == "values":
        return Items("list", (*base.items.values(), *([base.other] if base.other else [])), complete)
    if name == "keys":
        return Items("list", tuple(Const(key) for key in base.items), complete)
    if name in ("get", "pop", "setdefault") and site.args:
        found = folding.subscript(base, site.args[0])
        if isinstance(found, Unknown) or (complete and not _has(base, site.args[0])):
            return site.args[1] if len(site.args) > 1 else Const(None)
        return found
    if name == "update":
        for argument in site.args:
            if isinstance(argument, Mapping):
                base.items.update(argument.items)
            else:
                base.other = Unknown("updated")
        base.items.update(site.kwargs)
        return Const(None)
    if name == "copy":
        return Mapping(dict(base.items), base.other)
    return Unknown(name)


def _has(base: Mapping, key: Value) -> bool:
    return isinstance(key, Const) and folding.hashable(key.value) and key.value in base.items


def _text_method(base: Const, name: str, site: Site) -> Value:
    if name == "format":
        return Operation("format", (base, *site.args, *site.kwargs.values()))
    if isinstance(base.value, str) and name in ("joinpath",):
        parts = [base, *site.args]
        if all(isinstance(part, Const) for part in parts):
            return Const(posixpath.join(*(str(constant(part)) for part in parts)), base.soft)
        return Operation("path", tuple(parts))
    method = getattr(base.value, name, None)
    arguments = [constant(argument) for argument in site.args]
    plain = all(isinstance(argument, Const) for argument in site.args) and not site.kwargs
    if callable(method) and plain and isinstance(base.value, str) and name in _PURE:
        try:
            return Const(method(*arguments), base.soft)
        except Exception:
            return Unknown(name)
    return Operation(name, (base, *site.args))


_PURE = frozenset(
    ("lower upper strip lstrip rstrip replace startswith endswith title capitalize removeprefix").split()
)

_HANDLERS: dict[str, Handler] = {
    "builtins.super": _super,
    "builtins.len": _len,
    "builtins.int": _cast("int", int),
    "builtins.float": _cast("float", float),
    "builtins.bool": _cast("bool", bool),
    "builtins.str": _cast("str", str),
    "builtins.min": _fold(min),
    "builtins.max": _fold(max),
    "builtins.abs": _fold(abs),
    "builtins.round": _fold(round),
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.map": _map,
    "builtins.getattr": _getattr,
    "builtins.isinstance": _opaque,
    "builtins.hasattr": _opaque,
    "functools.partial": _partial,
    "importlib.import_module": _import_module,
    "builtins.__import__": _import_module,
    "collections.defaultdict": _default_dict,
    "os.path.join": _join_path,
    "tf.io.gfile.join": _join_path,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "os.path.exists": _opaque,
    "os.environ.get": _get_environment,
    "os.getenv": _get_environment,
    "os.environ.setdefault": _set_environment,
    "os.putenv": _set_environment,
    "os.environ.update": _update_environment,
    "argparse.ArgumentParser": _parser,
    "math.ceil": _fold(__import__("math").ceil),
    "math.floor": _fold(__import__("math").floor),
}
