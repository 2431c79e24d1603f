"""Methods of lists, dicts and literals."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tflint_gpu.program import folding, joins
from tflint_gpu.program.context import Activation, Loop
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Items, Mapping, Operation, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import Site, State


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
        grown = folding.bounded(base.kind, (*base.items, site.args[-1]), complete=base.complete)
        base.items = grown.items
        base.complete = grown.complete and not state.branches and not _in_loop(state) and name == "append"
    elif name in ("extend", "update") and site.args:
        other = site.args[0]
        if isinstance(other, Items):
            both = base.complete and other.complete
            grown = folding.bounded(base.kind, (*base.items, *other.items), complete=both)
            base.items = grown.items
            base.complete = grown.complete and not state.branches and not _in_loop(state)
        else:
            base.complete = False
    elif name == "copy":
        return Items(base.kind, base.items, base.complete)
    elif name == "pop":
        base.complete = False
        return joins.join_all(base.items) if base.items else Unknown("pop")
    elif name == "reverse" and base.complete and not state.branches:
        base.items = base.items[::-1]
    elif name in ("clear", "remove", "reverse", "sort", "discard"):
        base.complete = False
    return Const(None) if name in ("append", "add", "insert", "extend") else Unknown(name)


def _in_loop(state: State) -> bool:
    for frame in state.context:
        if isinstance(frame, Activation):
            return False
        if isinstance(frame, Loop) and not frame.unrolled:
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
        key, default = site.args[0], site.args[1] if len(site.args) > 1 else Const(None)
        found = folding.subscript(base, key)
        if isinstance(found, Unknown) or (complete and not _has(base, key)):
            if name == "setdefault" and isinstance(key, Const) and folding.hashable(key.value):
                base.items.setdefault(key.value, default)
            return default
        if name == "pop" and isinstance(key, Const) and folding.hashable(key.value):
            base.items.pop(key.value, None)
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
    small = isinstance(base.value, str) and len(base.value) * max([1, *map(_size, arguments)]) <= folding.MAX_TEXT
    if callable(method) and plain and small and name in _PURE:
        try:
            return Const(method(*arguments), base.soft)
        except Exception:
            return Unknown(name)
    return Operation(name, (base, *site.args))


def _size(argument: object) -> int:
    return len(argument) if isinstance(argument, str) else 1


_PURE = frozenset(
    ("lower upper strip lstrip rstrip replace startswith endswith title capitalize removeprefix").split()
)
