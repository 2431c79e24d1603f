"""Looking at objects by name and making them from others: getattr, vars, type, dataclasses.replace, namedtuple."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.program import assignment, attributes, kinds
from tflint_gpu.program.questions import constant
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Attribute,
    Class,
    Const,
    External,
    Instance,
    Items,
    Mapping,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


def get_attribute(machine: Machine, state: State, site: Site) -> Value | None:
    """``getattr``: with a default only where all attributes of the owner are known."""
    if len(site.args) < 2 or not isinstance(constant(site.args[1]), str):
        return Unknown("getattr")
    owner = site.args[0]
    found = attributes.attribute(machine, state, owner, constant(site.args[1]))
    if len(site.args) == 3 and isinstance(found, Attribute) and found.base is owner and _is_closed(owner):
        return site.args[2]
    return found


def _is_closed(owner: Value) -> bool:
    """Say whether all attributes of `owner` are known."""
    match owner:
        case Mapping(other=None):
            return True
        case Instance(cls=cls) | (Class() as cls):
            return not any(base != "builtins.object" for base in cls.ancestry()) and not cls.find("__getattr__")
        case _:
            return False


def set_attribute(machine: Machine, state: State, site: Site) -> Value | None:
    """``setattr``: under a name that is not known, any attribute may have changed."""
    if len(site.args) != 3:
        return None
    owner, name, value = site.args
    if isinstance(name, Const) and isinstance(name.value, str):
        assignment.set_attribute(machine, state, site.location, owner, name.value, value)
    elif isinstance(owner, Instance):
        owner.attributes.update(dict.fromkeys(owner.attributes, Unknown("set by name")))
    return Const(None)


def type_of(machine: Machine, state: State, site: Site) -> Value | None:
    """``type`` of one argument: the class, the project's own or one from outside."""
    match site.args:
        case (Instance(cls=cls),) | (Model(instance=Instance(cls=cls)),):
            return cls
        case (value,):
            name = kinds.class_of(value)
            return None if name is None else External(name)
        case _:
            return None


def variables_of(machine: Machine, state: State, site: Site) -> Value | None:
    """``vars`` and ``locals``: the very dict, so that what is set in it is set."""
    match site.args:
        case ():
            return Mapping(state.names)
        case (Instance(attributes=own),):
            return Mapping(own)
        case (Mapping() as namespace,):
            return namespace
        case _:
            return None


def global_names(machine: Machine, state: State, site: Site) -> Value | None:
    """``globals``: the very dict."""
    return Mapping(state.module.names)


def replaced(machine: Machine, state: State, site: Site) -> Value | None:
    """``dataclasses.replace``."""
    match site.args:
        case (Instance(cls=cls, attributes=own, call=call),):
            return Instance(cls, {**own, **site.kwargs}, call)
        case _:
            return None


def as_dict(machine: Machine, state: State, site: Site) -> Value | None:
    """``dataclasses.asdict``: a copy."""
    match site.args:
        case (Instance(attributes=own),):
            return Mapping(dict(own))
        case _:
            return None


def named_tuple(machine: Machine, state: State, site: Site) -> Value | None:
    """``collections.namedtuple``: a class with these fields."""
    name, fields = (constant(site.args[0]), site.args[1]) if len(site.args) > 1 else (None, None)
    listed = [constant(part) for part in fields.items] if isinstance(fields, Items) else constant(fields)
    names = listed.replace(",", " ").split() if isinstance(listed, str) else listed
    if not isinstance(name, str) or not names or not all(isinstance(n, str) and n.isidentifier() for n in names):
        return None
    body: list[ast.stmt] = [
        ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant(None), value=None, simple=1) for n in names
    ]
    node = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[])
    return Class(name, name, state.module, site.location, node, (External("typing.NamedTuple"),))
