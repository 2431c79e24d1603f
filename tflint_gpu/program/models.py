"""Keras layers and models: how they are built, what they are made of, and their forward passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.program import api, attributes, training
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Context, Region
from tflint_gpu.program.values import (
    Attribute,
    Const,
    Function,
    GraphFunction,
    Instance,
    Items,
    Mapping,
    Parameter,
    Partial,
    Produced,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import Site, State

#: Where add-ons of Keras keep their models, and what else lies there.
_HUBS = ("keras_hub.models.", "keras_nlp.models.", "keras_cv.models.")
_NO_MODELS = ("Preprocessor", "Tokenizer", "Converter", "Sampler", "Config", "LabelEncoder", "Layer")
_LOADERS = frozenset(
    [
        "keras.models.load_model",
        "keras.models.model_from_json",
        "keras.models.model_from_yaml",
        "keras.models.clone_model",
        "keras.models.model_from_config",
        "tf.saved_model.load",
    ]
)


def knows(name: str) -> bool:
    """Say whether `known` may know what calling `name` gives."""
    return name.startswith("keras")


def known(machine: Machine, state: State, name: str, site: Site) -> Value | None:
    """Return what calling `name` gives where that builds a layer, model or input; else None."""
    if name == "keras.Input":
        return Tensor(machine.record(name, site, state), symbolic=True)
    if name == "keras.Sequential":
        return _sequential(machine, state, site)
    if name == "keras.Model":
        return _functional(machine, state, site)
    last = name.rpartition(".")[2]
    if name.startswith("keras.applications.") and last[:1].isupper():
        return _new_model(machine, "application", machine.record(name, site, state))
    if name in _LOADERS or _is_hub_model(name):
        return _new_model(machine, "loaded", machine.record(name, site, state))
    if name.startswith("keras.layers."):
        return _layer(machine, state, name, last, site)
    return None


def _is_hub_model(name: str) -> bool:
    """Say whether `name` makes a model of KerasHub, KerasNLP or KerasCV: its class, or one of its presets."""
    owner, _, last = name.rpartition(".")
    made = owner if last == "from_preset" else name
    known = last == "from_preset" or name.startswith(_HUBS)
    return known and made.rpartition(".")[2][:1].isupper() and not made.endswith(_NO_MODELS)


def _new_model(machine: Machine, kind: str, noted: Call) -> Model:
    model = Model(kind, noted.location, noted)
    if not machine.muted:
        machine.program.models.append(model)
    return model


def _layer(machine: Machine, state: State, name: str, last: str, site: Site) -> Value:
    noted = machine.record(name, site, state)
    if not last[:1].isupper():  # keras.layers.concatenate([...]): a layer made and called at once
        return Tensor(noted, symbolic=True, parents=tuple(_flatten(site)))
    for argument in (*site.args, *site.kwargs.values()):
        for part in argument.items if isinstance(argument, Items) else (argument,):
            if isinstance(part, Instance) and part.cls.is_a(*api.LAYER_CLASSES):
                _forward(machine, state, part, (Tensor(symbolic=True),), noted.location)
            elif last == "Lambda" and isinstance(part, Function | Partial | GraphFunction):
                machine.follow_in(
                    part, (Tensor(symbolic=True),), Region(noted.location, "model", owner=noted), state
                )
    return Produced(noted)


def _flatten(site: Site) -> Iterator[Value]:
    for argument in (*site.args, *site.kwargs.values()):
        if isinstance(argument, Items):
            yield from argument.items
        elif isinstance(argument, Mapping):
            yield from argument.items.values()
        else:
            yield argument


def under_construction(context: Context, site: Site) -> Context:
    """Return the context of an op that is applied to symbolic tensors: it becomes part of a model."""
    return context.inside(Region(site.location, "model"))


# --- layers at work


def call_layer(machine: Machine, state: State, layer: Produced, site: Site) -> Value:
    """Apply a layer of Keras."""
    noted = machine.record("keras.layers.Layer.__call__", site, state, receiver=layer)
    parents = tuple(_flatten(site))
    return Tensor(noted, symbolic=_is_symbolic(parents), parents=parents)


def call_project_layer(machine: Machine, state: State, layer: Instance, site: Site) -> Value:
    """Apply a layer of the project and follow its ``call``."""
    noted = machine.record("keras.layers.Layer.__call__", site, state, receiver=layer)
    parents = tuple(_flatten(site))
    _forward(machine, state, layer, site.args, site.location, site.kwargs)
    return Tensor(noted, symbolic=_is_symbolic(parents), parents=parents)


def _is_symbolic(parents: tuple[Value, ...]) -> bool:
    return any(isinstance(parent, Tensor) and parent.symbolic for parent in parents)


def _forward(
    machine: Machine,
    state: State,
    owner: Value,
    args: tuple[Value, ...],
    location: Location,
    kwargs: dict[str, Value] | None = None,
) -> Value:
    """Follow ``call`` (or ``__call__`` of a ``tf.Module``) of a layer or model of the project."""
    for name in ("call", "__call__"):
        method = attributes.attribute(machine, state, owner, name)
        if isinstance(method, Function | GraphFunction):
            # A forward pass outside any graph runs op by op; on symbolic tensors it is traced.
            eager = not state.context.in_graph and not _is_symbolic(args)
            kwargs = _with_training(method, state, args, kwargs or {})
            return machine.follow_in(method, args, Region(location, "model", eager=eager), state, kwargs)
    return Unknown("no call")


def _with_training(
    method: Function | GraphFunction, state: State, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> dict[str, Value]:
    """Add the argument ``training`` where Keras passes it by itself: from the call around, or by what runs."""
    inner = method.function if isinstance(method, GraphFunction) else method
    if "training" in kwargs or not isinstance(inner, Function):
        return kwargs
    if "training" not in _parameters(inner)[len(args) :]:
        return kwargs
    around, regions = state.names.get("training"), state.context.regions
    if not isinstance(around, Const) or around.value is None:
        around = Const(True) if "train-step" in regions else Parameter("training")
    return {**kwargs, "training": Const(False) if "test-step" in regions else around}


def _parameters(function: Function) -> list[str]:
    """Return the names of the arguments a caller passes, in order."""
    names = [part.arg for part in (*function.node.args.posonlyargs, *function.node.args.args)]
    names = names[1:] if function.bound is not None and function.kind != "static" else names
    return [*names, *(part.arg for part in function.node.args.kwonlyargs)]


# --- models


def _sequential(machine: Machine, state: State, site: Site) -> Value:
    model = _new_model(machine, "sequential", machine.record("keras.Sequential", site, state))
    model.complete = True
    assert model.call is not None
    given = model.call.argument("layers")
    if isinstance(given, Items):
        for part in given.items:
            add_layer(machine, state, model, part)
        model.complete = model.complete and given.complete
    elif given is not None and not (isinstance(given, Const) and given.value is None):
        model.complete = False
    return model


def add_layer(machine: Machine, state: State, model: Model, part: Value) -> None:
    """Add a layer or model to a sequential model."""
    match part:
        case Produced(call=call) if call.callee.startswith("keras.layers.") or api.type_of(call.callee):
            model.layers.append(call)
        case Tensor(origin=Call(callee="keras.Input")):
            return
        case Model():
            model.layers.extend(_layers_of(part))
            model.complete = model.complete and part.complete
        case Instance():
            _forward(
                machine, state, part, (Tensor(symbolic=True),), part.call.location if part.call else model.location
            )
            if part.call is not None:
                model.layers.append(part.call)
            model.complete = False
        case _:
            model.complete = False


def _layers_of(part: Model) -> list[Call]:
    """Return the layers that a model brings into another; one of Keras' own networks is a layer by itself."""
    return [part.call] if part.kind == "application" and part.call is not None else part.layers


def _functional(machine: Machine, state: State, site: Site) -> Value:
    model = _new_model(machine, "functional", machine.record("keras.Model", site, state))
    assert model.call is not None
    _trace_back(model, model.call.argument("outputs"))
    return model


def functional_subclass(machine: Machine, model: Model, site: Site) -> None:
    """``super().__init__(inputs, outputs)`` in a model of the project: it is a functional one."""
    outputs = site.kwargs.get("outputs") or (site.args[1] if len(site.args) > 1 else None)
    if outputs is not None:
        model.kind = "functional"
        _trace_back(model, outputs)
    del machine


def _trace_back(model: Model, outputs: Value | None) -> None:
    """Collect the layers between `outputs` and the inputs, in the order they are applied."""
    model.complete = True
    found: list[Call] = []
    seen: set[int] = set()
    stack = [outputs]
    while stack:
        value = stack.pop()
        if value is None or id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case Tensor(origin=origin, parents=parents):
                _take(model, found, origin)
                stack.extend(parents)
            case Items(items=items, complete=complete):
                model.complete = model.complete and complete
                stack.extend(items)
            case Mapping(items=entries):
                stack.extend(entries.values())
            case Attribute(base=Model() as inner, name="output" | "outputs"):
                found.extend(layer for layer in reversed(_layers_of(inner)) if layer not in found)
                model.complete = model.complete and inner.complete
            case Const():
                pass
            case _:
                model.complete = False
    model.layers = [*reversed(found), *model.layers]


def _take(model: Model, found: list[Call], origin: Call | None) -> None:
    if origin is None or origin.callee == "keras.Input":
        return
    receiver = origin.receiver
    if model.call is not None and not origin.context.certain_since(model.call.context):
        model.complete = False
    if isinstance(receiver, Produced):
        if receiver.call not in found:
            found.append(receiver.call)
    elif isinstance(receiver, Model):
        found.extend(layer for layer in reversed(_layers_of(receiver)) if layer not in found)
        model.complete = model.complete and receiver.complete
    elif isinstance(receiver, Instance) and receiver.call is not None:
        found.append(receiver.call)
        model.complete = False
    elif origin.callee.startswith("keras.layers."):
        found.append(origin)
    else:
        model.complete = model.complete and origin.callee.startswith(("tf.", "keras.ops."))


def subclassed(machine: Machine, instance: Instance, noted: Call | None, location: Location) -> Model:
    """Make the model that an object of a project class derived from ``keras.Model`` is."""
    kind = "sequential" if instance.cls.is_a("keras.Sequential") else "subclass"
    model = Model(kind, noted.location if noted else location, noted, instance=instance)
    if not machine.muted:
        machine.program.models.append(model)
    return model


def collect_layers(model: Model) -> None:
    """Collect the layers that a subclassed model keeps in its attributes."""
    assert model.instance is not None
    model.complete = model.complete or model.kind == "subclass"
    stack: list[Value] = list(reversed(model.instance.attributes.values()))
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case Produced(call=call) if call.callee.startswith("keras.layers."):
                if call not in model.layers:
                    model.layers.append(call)
            case Model():
                model.layers.extend(layer for layer in _layers_of(value) if layer not in model.layers)
                model.complete = model.complete and value.complete
            case Instance(cls=cls, attributes=attributes) if cls.is_a(*api.LAYER_CLASSES):
                model.complete = False
                stack.extend(reversed(list(attributes.values())))
            case Items(items=items, complete=complete):
                model.complete = model.complete and complete
                stack.extend(reversed(items))
            case Mapping(items=entries):
                stack.extend(reversed(list(entries.values())))
            case Unknown():
                model.complete = False


def call_model(machine: Machine, state: State, model: Model, site: Site) -> Value:
    """Apply a model; the ``call`` of a subclassed one is followed."""
    noted = machine.record("keras.Model.__call__", site, state, receiver=model)
    parents = tuple(_flatten(site))
    if model.instance is not None:
        first = len(machine.program.calls)
        _forward(machine, state, model, site.args, site.location, site.kwargs)
        model.calls.extend(machine.program.calls[first:])
    return Tensor(noted, symbolic=_is_symbolic(parents), parents=parents)


def method(
    machine: Machine, state: State, model: Model, name: str, site: Site, *, inherited: bool = False
) -> Value:
    """Return what ``model.name(…)`` gives; `inherited` skips the project's own override of it."""
    if model.instance is not None and not inherited:
        own = attributes.attribute(machine, state, model, name)
        if isinstance(own, Function | GraphFunction | Partial | Produced | Instance | Model):
            return machine.call(own, site, state)
    if name == "add":
        machine.record("keras.Sequential.add", site, state, receiver=model)
        if site.args:
            add_layer(machine, state, model, site.args[0])
        if model.call is not None and not state.context.certain_since(model.call.context):
            model.complete = False
        return Const(None)
    if name in ("call", "__call__"):
        return call_model(machine, state, model, site)
    return training.model_method(machine, state, model, model, name, site)
