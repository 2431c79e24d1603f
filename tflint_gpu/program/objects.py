"""Objects of the project's classes: construction, fields, calls and methods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.findings import Location
from tflint_gpu.program import api, attributes, callbacks, graphs, joins, models, training
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Attribute,
    Class,
    External,
    Function,
    GraphFunction,
    Instance,
    Parameter,
    Produced,
    Super,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


def instantiate(machine: Machine, state: State, cls: Class, site: Site, *, alone: bool = False) -> Value:
    """Make an object of a project class and run its ``__init__``; `alone` reads it without a caller."""
    noted = machine.record(f"{cls.module.name}:{cls.qualname}", site, state) if not alone else None
    instance = Instance(cls, {}, noted)
    owner: Value = instance
    if cls.is_a(*api.MODEL_CLASSES):
        owner = models.subclassed(machine, instance, noted, site.location)
    machine.instances.setdefault(id(cls), owner)
    init = cls.find("__init__")
    if isinstance(init, Function):
        bound = attributes.bound_to(init, owner)
        machine.follow(bound, site.args, site.kwargs, state.context, open_call=site.open, alone=alone)
    else:
        _fill_fields(machine, state, cls, instance, site, alone=alone)
        after = cls.find("__post_init__")
        if isinstance(after, Function):
            machine.follow(attributes.bound_to(after, owner), (), {}, state.context)
    if isinstance(owner, Model):
        models.collect_layers(owner)
    elif cls.is_a("keras.losses.Loss"):
        training.follow_loss_object(machine, state, instance)
    return owner


def _fill_fields(
    machine: Machine, state: State, cls: Class, instance: Instance, site: Site, *, alone: bool
) -> None:
    """Set the fields of a dataclass or NamedTuple from the arguments, else from their defaults."""
    names = [
        part.target.id
        for owner in reversed(cls.lineage)
        if isinstance(owner, Class)
        for part in owner.node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    given = {**dict(zip(names, site.args, strict=False)), **{k: v for k, v in site.kwargs.items() if k in names}}
    for name in names:
        value = given.get(name)
        if value is None:
            default = cls.find(name)
            if default is None or (site.open and not alone):
                continue
            value = _field_default(machine, state, default)
            value = joins.soften(value) if alone else value
        instance.attributes[name] = value


def is_record(cls: Class) -> bool:
    """Say whether `cls` is nothing but fields: a dataclass or NamedTuple, as settings are kept in."""
    return cls.find("__init__") is None and any(isinstance(part, ast.AnnAssign) for part in cls.node.body)


def _field_default(machine: Machine, state: State, default: Value) -> Value:
    if isinstance(default, Produced) and default.callee == "dataclasses.field":
        plain = default.call.argument("default")
        if plain is not None:
            return plain
        factory = default.call.argument("default_factory")
        if factory is not None:
            return machine.call(factory, Site(default.call.location, (), {}), state)
    return default


def call_instance(machine: Machine, state: State, instance: Instance, site: Site) -> Value:
    """Call an object of a project class."""
    if instance.cls.is_a(*api.LAYER_CLASSES):
        return models.call_project_layer(machine, state, instance, site)
    method = instance.cls.find("__call__")
    if isinstance(method, Function):
        return machine.call(attributes.bound_to(method, instance), site, state)
    if isinstance(method, GraphFunction):
        return graphs.call_graph_function(machine, state, attributes.bind(method, instance), site)  # type: ignore[arg-type]
    own = instance.cls.find("call")
    if isinstance(own, Function) and instance.cls.is_a("keras.losses.Loss", "keras.metrics.Metric"):
        return machine.call(attributes.bound_to(own, instance), site, state)
    noted = machine.record(f"{instance.cls.module.name}:{instance.cls.qualname}.__call__", site, state, instance)
    return Tensor(noted, parents=site.args) if any(isinstance(a, Tensor) for a in site.args) else Produced(noted)


def method_of_object(machine: Machine, state: State, base: Instance | Class, name: str, site: Site) -> Value:
    """Call a method of a project object or class; one it inherits from outside is named by its ancestor."""
    function = attributes.attribute(machine, state, base, name)
    if not isinstance(function, Attribute):
        return machine.call(function, site, state)
    cls = base.cls if isinstance(base, Instance) else base
    ancestors = list(cls.ancestry())
    if cls.is_a(*api.LAYER_CLASSES) and name == "__call__":
        return machine.call(base, site, state)
    callee = f"{ancestors[0]}.{name}" if ancestors else ""
    noted = machine.record(callee, site, state, receiver=base)
    callbacks.follow_arguments(machine, state, site)
    return Produced(noted) if callee else Unknown("method")


def method_of_super(machine: Machine, state: State, base: Super, name: str, site: Site) -> Value:
    """Call a method through ``super()``."""
    function = attributes.attribute(machine, state, base, name)
    if not isinstance(function, Attribute):
        return machine.call(function, site, state)
    if isinstance(base.instance, Model) and name in api.MODEL_METHODS:
        return models.method(machine, state, base.instance, name, site, inherited=True)
    if isinstance(base.instance, Model) and name == "__init__":
        models.functional_subclass(machine, base.instance, site)
    ancestor = next(iter(base.cls.ancestry()), "builtins.object")
    noted = machine.record(f"{ancestor}.{name}", site, state, receiver=base.instance)
    return Produced(noted)


def promised(machine: Machine, name: str, annotation: Value, location: Location) -> Value:
    """Return what a parameter annotated with `annotation` holds."""
    match annotation:
        case External(name="keras.Model" | "keras.Sequential"):
            return machine.model_for(location)
        case External(name="tf.Tensor"):
            return Tensor()
        case External(name=dotted):
            return Parameter(name, dotted)
        case _:
            return Parameter(name)
