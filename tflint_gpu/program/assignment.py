"""Assignment: what a target is bound to, on names, attributes and items."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import attributes, folding, joins
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Class,
    Const,
    Element,
    External,
    Function,
    Generator,
    Imported,
    Instance,
    Items,
    Mapping,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model, Setting

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.machine import Machine


def assign(machine: Machine, state: State, target: ast.expr, value: Value) -> None:
    """Bind `target` to `value`."""
    match target:
        case ast.Name(id=name):
            set_name(state, name, value)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element, part in zip(elements, spread(value, elements), strict=True):
                assign(machine, state, element, part)
        case ast.Starred(value=inner):
            assign(machine, state, inner, value)
        case ast.Attribute(value=base, attr=name):
            owner = machine.evaluate(base, state)
            set_attribute(machine, state, state.module.location(target), owner, name, value)
        case ast.Subscript(value=base, slice=key):
            _set_item(machine, state, target, machine.evaluate(base, state), machine.evaluate(key, state), value)


def set_name(state: State, name: str, value: Value) -> None:
    """Bind `name`, in the scope that a global or nonlocal statement chose for it."""
    if name not in state.outer_names:
        state.names[name] = value
        return
    here = state.parent
    while here is not None:
        if name in here.names:
            here.names[name] = value
            return
        here = here.parent
    state.module.names[name] = value


def spread(value: Value, elements: list[ast.expr]) -> list[Value]:
    """Return one value for each of the targets `elements` that `value` is unpacked into."""
    wanted = len(elements)
    starred = next((i for i, element in enumerate(elements) if isinstance(element, ast.Starred)), None)
    match value:
        case Items(items=items, complete=True) if starred is None and len(items) == wanted:
            return list(items)
        case Items(kind=kind, items=items, complete=True) if starred is not None and len(items) >= wanted - 1:
            after = wanted - starred - 1
            middle = Items(kind, items[starred : len(items) - after])
            return [*items[:starred], middle, *items[len(items) - after :]]
        case Instance(cls=cls, attributes=fields) if cls.is_a("typing.NamedTuple") and starred is None:
            values = list(fields.values())
            return values if len(values) == wanted else [Unknown("unpacked")] * wanted
        case Tensor(symbolic=symbolic):
            return [Tensor(symbolic=symbolic, parents=(value,)) for _ in elements]
        case Choice(options=options):
            columns = zip(*(spread(option, elements) for option in options), strict=True)
            return [joins.join_all(column) for column in columns]
        case Generator() | Items() | Mapping():
            return [Unknown("unpacked")] * wanted
        case _:
            return [Element(value, index) for index in range(wanted)]


def set_attribute(
    machine: Machine, state: State, location: Location, base: Value, name: str, value: Value
) -> None:
    """Set ``base.name = value``; on what is not the project's it is noted as a call of ``setattr``."""
    for owner in options_of(base):
        match owner:
            case Instance() | Model(instance=Instance()):
                instance = owner if isinstance(owner, Instance) else owner.instance
                assert instance is not None
                found = instance.cls.find(name)
                if isinstance(found, Function) and found.setter is not None:
                    machine.follow(attributes.bound_to(found.setter, owner), (value,), {}, state.context)
                    continue
                old = instance.attributes.get(name)
                joined = joins.join(old, value) if old is not None and state.branches else value
                instance.attributes[name] = joined
                if isinstance(owner, Model) and name == "run_eagerly":
                    _note_attribute(machine, state, location, owner, name, value)
            case Imported(module=module):
                module.names[name] = value
            case Class():
                owner.members[name] = value
            case Mapping():
                owner.items[name] = value
            case _:
                root, dotted = _root_of(owner, name)
                machine.attributes.setdefault(id(root), (root, {}))[1][dotted] = value
                _note_attribute(machine, state, location, root, dotted, value)


def _root_of(owner: Value, name: str) -> tuple[Value, str]:
    while isinstance(owner, Attribute):
        name = f"{owner.name}.{name}"
        owner = owner.base
    return owner, name


def _note_attribute(
    machine: Machine, state: State, location: Location, owner: Value, name: str, value: Value
) -> None:
    site = Site(location, (Const(name), value), {})
    machine.record("builtins.setattr", site, state, receiver=owner)


def _set_item(machine: Machine, state: State, node: ast.Subscript, base: Value, key: Value, value: Value) -> None:
    match base:
        case External(name="os.environ"):
            if isinstance(key, Const) and isinstance(key.value, str):
                note_setting(machine, state, key.value, value, node)
        case Mapping(items=items):
            if isinstance(key, Const) and state.branches and folding.hashable(key.value) and key.value in items:
                value = joins.join(items[key.value], value)
            folding.store_item(base, key, value)
        case Items(items=items):
            if isinstance(key, Const) and isinstance(key.value, int) and -len(items) <= key.value < len(items):
                kept = list(items)
                kept[key.value] = joins.join(kept[key.value], value) if state.branches else value
                base.items = tuple(kept)
            else:
                base.items = (Unknown("replaced"),) * len(items)
                base.complete = False
        case _:
            return


def note_setting(machine: Machine, state: State, name: str, value: Value, node: Any) -> None:
    """Note that the program sets the environment variable `name`."""
    if not machine.muted:
        machine.program.settings.append(
            Setting(name, value, state.module.location(node), state.qualname, state.context)
        )
