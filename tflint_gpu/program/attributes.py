"""Attributes: what ``base.name`` is, for every kind of value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import api, imports
from tflint_gpu.program.calls import Call
from tflint_gpu.program.joins import join_all
from tflint_gpu.program.names import member
from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Class,
    Const,
    External,
    Function,
    GraphFunction,
    Imported,
    Instance,
    Mapping,
    Partial,
    Produced,
    Subscript,
    Super,
    Tensor,
    Unknown,
    Value,
    find_in,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import State

#: The symbolic tensors at the ends of a network and of its layers.
_ENDS = ("input", "inputs", "output", "outputs")

_OPTIMIZER = "keras.optimizers.Optimizer"

#: Attributes of a tensor that are no tensors.
_TENSOR_FACTS = frozenset(("shape dtype name device graph op ndim row_splits nrows bounding_shape").split())


def attribute(machine: Machine, state: State, base: Value, name: str) -> Value:
    """Return ``base.name``; properties of project classes are followed."""
    match base:
        case External(name=dotted):
            return _external_attribute(machine, dotted, name)
        case Imported(module=module):
            return imports.member_of(machine, module, name)
        case Instance():
            return _instance_attribute(machine, state, base, base, name)
        case Model(instance=Instance() as instance):
            return _instance_attribute(machine, state, base, instance, name)
        case Class():
            return _class_attribute(base, name)
        case Super(cls=cls, instance=instance):
            found = _inherited(cls, instance, name)
            return bind(found, instance) if found is not None else Attribute(base, name)
        case Mapping(items=items) if name in items:
            return items[name]
        case Tensor(symbolic=symbolic):
            if name in _TENSOR_FACTS:
                return Attribute(base, name)
            return Tensor(symbolic=symbolic, parents=(base,))
        case Choice(options=options):
            return join_all(attribute(machine, state, option, name) for option in options)
        case Const() if name == "value":
            return base  # of a member of an enumeration
        case Const(value=text) if name in ("name", "parent", "stem") and isinstance(text, str):
            return Const(text, soft=True)
        case GraphFunction(function=inner) if name in ("python_function", "__wrapped__"):
            return inner
        case _:
            return _noted_attribute(machine, base, name)


def _noted_attribute(machine: Machine, base: Value, name: str) -> Value:
    """Return what was set on a value from outside the project, or what its kind is known to have."""
    known = machine.attributes.get(id(base))
    if known is not None and name in known[1]:
        return known[1][name]
    if name == "iterations" and isinstance(base, Produced) and api.type_of(base.callee) == _OPTIMIZER:
        return Tensor(parents=(base,), operator="variable")
    if name in _ENDS and (model := _network_of(base)) is not None:
        return Tensor(symbolic=True, parents=(Attribute(model, name),))
    return Attribute(base, name)


def _network_of(base: Value) -> Model | None:
    """Return the model behind `base`: itself, or the one of which it is a layer, by name or by number."""
    match base:
        case Model():
            return base
        case Produced(call=Call(callee="keras.Model.get_layer", receiver=Model() as model)):
            return model
        case Subscript(base=Attribute(base=Model() as model, name="layers")):
            return model
        case _:
            return None


def _external_attribute(machine: Machine, dotted: str, name: str) -> Value:
    if dotted in ("absl.flags.FLAGS", "tf.compat.v1.flags.FLAGS", "tf.flags.FLAGS", "tf.app.flags.FLAGS"):
        return machine.flags.get(name, Unknown("flag"))
    return External(member(dotted, name))


def _instance_attribute(machine: Machine, state: State, owner: Value, instance: Instance, name: str) -> Value:
    if name in instance.attributes:
        value = instance.attributes[name]
        if isinstance(value, Const) and name in instance.cls.mutable:
            return Unknown("changes in a method")
        if isinstance(value, Tensor) and name in instance.cls.mutable:
            return Tensor(symbolic=value.symbolic, parents=(value,))
        if isinstance(value, Produced) and value.callee == "tf.Variable":
            machine.variables_touched += 1
        return value
    found = instance.cls.find(name)
    if isinstance(found, Function) and found.kind == "property":
        bound = bind(found, owner)
        assert isinstance(bound, Function)
        return machine.follow(bound, (), {}, state.context)
    if found is not None:
        return bind(found, owner)
    if name == "__class__":
        return instance.cls
    if name == "__dict__":
        return Mapping(instance.attributes)
    return Attribute(owner, name)


def _class_attribute(cls: Class, name: str) -> Value:
    found = cls.find(name)
    if found is None:
        return External(cls.name) if name == "__class__" else Attribute(cls, name)
    if isinstance(found, Function) and found.kind == "class":
        return bound_to(found, cls)
    return found


def _inherited(cls: Class, instance: Value, name: str) -> Value | None:
    """Return what ``super()`` in a method of `cls` finds: the next of the object's own classes that has it."""
    made = instance.instance if isinstance(instance, Model) else instance
    own = made.cls if isinstance(made, Instance) else made if isinstance(made, Class) else cls
    lineage = own.lineage if cls in own.lineage else cls.lineage
    return find_in(lineage[lineage.index(cls) + 1 :], name)


def bound_to(function: Function, bound: Value | None) -> Function:
    """Return `function` bound to `bound`."""
    return Function(
        function.name,
        function.qualname,
        function.module,
        function.location,
        function.node,
        function.closure,
        bound,
        function.owner,
        function.kind,
    )


def bind(found: Value, owner: Value) -> Value:
    """Return a class member as seen through an object: functions become bound methods."""
    match found:
        case Function(kind="static"):
            return found
        case Function(kind="class", owner=cls) if cls is not None:
            return bound_to(found, cls)
        case Function():
            return bound_to(found, owner)
        case GraphFunction(function=Function() as inner):
            return GraphFunction(bound_to(inner, owner), found.made, found.options, found.calls)
        case Partial(function=Function() as inner, method=True):
            return Partial(bound_to(inner, owner), found.args, found.kwargs)
        case _:
            return found
