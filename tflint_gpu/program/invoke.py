"""Calls: what is called decides what happens."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from tflint_gpu.program import (
    api,
    callbacks,
    containers,
    datasets,
    graphs,
    imports,
    joins,
    models,
    objects,
    outside,
    training,
)
from tflint_gpu.program.calls import Call
from tflint_gpu.program.names import member
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Class,
    Const,
    Dataset,
    Element,
    External,
    Function,
    Generator,
    GraphFunction,
    Imported,
    Instance,
    Items,
    Mapping,
    Operation,
    Parameter,
    Partial,
    Produced,
    Subscript,
    Super,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine


def evaluate_call(machine: Machine, state: State, node: ast.Call) -> Value:
    """Return what a call in the text gives."""
    function = node.func
    if isinstance(function, ast.Attribute):
        base = machine.evaluate(function.value, state)
        return call_method(machine, state, base, function.attr, site_of(machine, state, node))
    return call(machine, state, machine.evaluate(function, state), site_of(machine, state, node))


def site_of(machine: Machine, state: State, node: ast.Call) -> Site:
    """Evaluate the arguments of the call `node`."""
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    is_open = False
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            inner = machine.evaluate(argument.value, state)
            if isinstance(inner, Items) and inner.complete:
                args.extend(inner.items)
            else:
                is_open = True
            continue
        args.append(machine.evaluate(argument, state))
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value, state)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Mapping) and value.other is None and all(isinstance(k, str) for k in value.items):
            kwargs.update(value.items)
        else:
            is_open = True
    return Site(state.module.call_location(node), tuple(args), kwargs, is_open, node)


def call(machine: Machine, state: State, function: Value, site: Site) -> Value:
    """Return what calling `function` gives."""
    match function:
        case External(name=name):
            return external(machine, state, name, site)
        case Function():
            return project_function(machine, state, function, site)
        case GraphFunction():
            return graphs.call_graph_function(machine, state, function, site)
        case Class():
            return objects.instantiate(machine, state, function, site)
        case Partial():
            return call(machine, state, function.function, _merged(function, site))
        case Model():
            return models.call_model(machine, state, function, site)
        case Instance():
            return objects.call_instance(machine, state, function, site)
        case Produced():
            return _call_produced(machine, state, function, site)
        case Choice(options=options):
            return joins.join_all(call(machine, state, option, site) for option in options)
        case Attribute(base=base, name=name):
            return call_method(machine, state, base, name, site)
        case _:
            noted = machine.record("", site, state, receiver=function)
            callbacks.follow_arguments(machine, state, site)
            return _result_of_unknown(function, noted, site)


def _result_of_unknown(function: Value, noted: Call, site: Site) -> Value:
    if any(isinstance(argument, Tensor) for argument in site.args):
        return Tensor(noted, symbolic=_symbolic(site), parents=site.args)
    return Unknown("call of unknown") if not isinstance(function, Parameter) else Produced(noted)


def _merged(partial: Partial, site: Site) -> Site:
    return Site(site.location, (*partial.args, *site.args), {**partial.kwargs, **site.kwargs}, site.open)


def project_function(machine: Machine, state: State, function: Function, site: Site) -> Value:
    """Follow a function of the project."""
    machine.record(f"{function.module.name}:{function.qualname}", site, state, receiver=function.bound)
    return machine.follow(function, site.args, site.kwargs, state.context, open_call=site.open, site=site.location)


# --- classes and objects


def _call_produced(machine: Machine, state: State, produced: Produced, site: Site) -> Value:
    kind = api.type_of(produced.callee)
    if kind == "keras.layers.Layer":
        return models.call_layer(machine, state, produced, site)
    if kind is not None:
        noted = machine.record(f"{kind}.__call__", site, state, receiver=produced)
        if kind == "keras.losses.Loss" or any(isinstance(argument, Tensor) for argument in site.args):
            return Tensor(noted, symbolic=_symbolic(site), parents=site.args)
        return Produced(noted)
    noted = machine.record(f"{produced.callee}()", site, state, receiver=produced)
    callbacks.follow_arguments(machine, state, site)
    return Tensor(noted, parents=site.args) if any(isinstance(a, Tensor) for a in site.args) else Produced(noted)


# --- methods


def call_method(machine: Machine, state: State, base: Value, name: str, site: Site) -> Value:
    """Return what ``base.name(…)`` gives."""
    match base:
        case External(name=dotted):
            return external(machine, state, member(dotted, name), site)
        case Imported(module=module):
            return call(machine, state, imports.member_of(machine, module, name), site)
        case Choice(options=options):
            return joins.join_all(call_method(machine, state, option, name, site) for option in options)
        case Dataset():
            return datasets.method(machine, state, base, name, site)
        case Model():
            return models.method(machine, state, base, name, site)
        case Instance() | Class():
            return objects.method_of_object(machine, state, base, name, site)
        case Super():
            return objects.method_of_super(machine, state, base, name, site)
        case Items() | Mapping() | Const():
            if name == "append" and site.args and isinstance(site.args[0], (Tensor, Items)):
                machine.record("builtins.list.append", site, state, receiver=base)
            return containers.container_method(machine, state, base, name, site)
        case GraphFunction():
            return graphs.method(machine, state, base, name, site)
        case Tensor():
            noted = machine.record(f"tf.Tensor.{name}", site, state, receiver=base)
            return Produced(noted) if name in ("numpy", "item", "tolist") else Tensor(noted, parents=(base,))
        case Generator():
            return machine.draw(base, state.context) if name == "__next__" else Unknown("generator")
        case _:
            return method_of_unknown(machine, state, base, name, site)


def method_of_unknown(machine: Machine, state: State, base: Value, name: str, site: Site) -> Value:
    """A method of a value whose class lies outside the project, or is not known at all."""
    kind = api.type_of(base.callee) if isinstance(base, Produced) else None
    if kind is not None:
        return graphs.method_of_type(machine, state, base, kind, name, site)
    if isinstance(base, Produced):
        special = outside.method_of_produced(machine, state, base, name, site)
        if special is not None:
            return special
        callee = f"{base.callee}().{name}" if base.callee else ""
        source = api.DATASET_SOURCES.get(callee)
        if source is not None:
            return datasets.source(machine, state, callee, site)
    else:
        callee = distinct(state, base, name, site)
        if callee == "keras.optimizers.Optimizer.apply_gradients":
            return graphs.method_of_type(machine, state, base, "keras.optimizers.Optimizer", name, site)
        if callee.startswith("keras.Model."):
            return training.model_method(machine, state, None, base, name, site)
        if callee.startswith("tf.distribute.Strategy."):
            return graphs.method_of_type(machine, state, base, "tf.distribute.Strategy", name, site)
    noted = machine.record(callee, site, state, receiver=base)
    callbacks.follow_arguments(machine, state, site)
    if any(isinstance(argument, Tensor) for argument in site.args):
        return Tensor(noted, parents=(*site.args, base))
    return Produced(noted) if callee else Unknown(f".{name}()")


def distinct(state: State, base: Value, name: str, site: Site) -> str:
    """Name a method of a receiver of unknown type, where name and keywords leave no doubt; else ""."""
    if "torch" in state.module.packages:
        return ""
    if name in api.DISTINCT_METHODS:
        return api.DISTINCT_METHODS[name]
    keywords = api.DISTINCT_KEYWORDS.get(name)
    if keywords and any(keyword in site.kwargs for keyword in keywords):
        return f"keras.Model.{name}"
    if (
        name == "numpy"
        and not site.args
        and isinstance(base, Unknown | Parameter | Element | Subscript | Operation)
    ):
        return "tf.Tensor.numpy"
    return ""


# --- the outside world


def external(machine: Machine, state: State, name: str, site: Site) -> Value:
    """Return what calling the external thing `name` gives."""
    if name in api.TRANSPARENT:
        return _transparent(machine, state, name, site)
    for handler in _handlers_of(name):
        result = handler(machine, state, name, site)
        if result is not None:
            return result
    owner, _, method_name = name.rpartition(".")
    if owner == "keras.Model" and method_name in api.MODEL_METHODS and site.args:
        return call_method(machine, state, site.args[0], method_name, callbacks.without_first(site))
    return generic(machine, state, name, site)


@functools.lru_cache(maxsize=20_000)
def _handlers_of(name: str) -> tuple[Callable[[Machine, State, str, Site], Value | None], ...]:
    """Return what may know a meaning of calling `name`, in the order to ask; for most names nothing does."""
    return tuple(room.known for room in (outside, datasets, models, graphs) if room.knows(name))


def generic(machine: Machine, state: State, name: str, site: Site) -> Value:
    """Note a call that has no meaning of its own here, and follow the project functions handed to it."""
    outer = state.context
    symbolic = _symbolic(site)
    if symbolic:
        state.context = models.under_construction(outer, site)
    noted = machine.record(name, site, state)
    callbacks.follow_arguments(machine, state, site)
    state.context = outer
    return (
        Tensor(noted, symbolic=symbolic, parents=(*site.args, *site.kwargs.values()))
        if _is_op(name, site)
        else Produced(noted)
    )


def _transparent(machine: Machine, state: State, name: str, site: Site) -> Value:
    position = api.TRANSPARENT[name]
    noted = machine.record(name, site, state)
    if position < len(site.args):
        return site.args[position]
    return site.kwargs.get("iterable") or Produced(noted)


_TENSOR_MODULES = tuple(
    """
    tf.math. tf.nn. tf.image. tf.linalg. tf.random. tf.strings. tf.signal. tf.sparse. tf.ragged.
    tf.audio. tf.io.decode tf.io.parse tf.io.read_file tf.sets. tf.quantization.
    tf.experimental.numpy. tf.raw_ops. tf.bitwise. tf.dtypes.cast tf.compat.v1.nn.
    tf.compat.v1.math. tf.autograph. tf.debugging.assert keras.ops. keras.backend. keras.losses.
    keras.activations. keras.metrics. keras.random. tensorflow_probability.
    tensorflow_addons.image. tensorflow_text.
    """.split()
)
_NO_TENSOR = frozenset(
    """
    tf.function tf.device tf.executing_eagerly tf.init_scope tf.name_scope tf.control_dependencies
    tf.random.set_seed tf.random.Generator.from_seed keras.backend.clear_session
    keras.backend.set_floatx keras.backend.set_image_data_format keras.backend.floatx
    keras.backend.image_data_format keras.backend.set_value keras.backend.get_value
    keras.backend.set_session keras.losses.get keras.metrics.get keras.activations.get
    keras.backend.set_learning_phase keras.backend.get_uid tf.get_logger
    """.split()
)


def _is_op(name: str, site: Site) -> bool:
    """Say whether an external call returns tensors: an op of TensorFlow or Keras."""
    known = _is_op_by_name(name)
    return any(isinstance(argument, Tensor) for argument in site.args) if known is None else known


@functools.lru_cache(maxsize=20_000)
def _is_op_by_name(name: str) -> bool | None:
    """Say whether `name` is an op; None where that depends on what it is given."""
    if name in _NO_TENSOR:
        return False
    if name.startswith(_TENSOR_MODULES):
        return name.startswith("tf.raw_ops.") or not name.rpartition(".")[2][:1].isupper()
    head, _, last = name.partition(".")
    if head == "tf" and "." not in last:
        return not last[:1].isupper()
    return None if name.startswith("tf.compat.v1.") else False


def _symbolic(site: Site) -> bool:
    for argument in (*site.args, *site.kwargs.values()):
        if isinstance(argument, Tensor) and argument.symbolic:
            return True
        if isinstance(argument, Items) and any(isinstance(i, Tensor) and i.symbolic for i in argument.items):
            return True
    return False
