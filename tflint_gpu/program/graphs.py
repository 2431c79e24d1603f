"""``tf.function``, gradient steps and distribution strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import callbacks, datasets, joins, training
from tflint_gpu.program.context import Region
from tflint_gpu.program.questions import options_of, walk
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    External,
    Function,
    GraphFunction,
    Items,
    Mapping,
    Partial,
    Produced,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.machine import Machine

_STEPS = frozenset({"apply_gradients", "apply", "minimize"})


def knows(name: str) -> bool:
    """Say whether `known` may know what calling `name` gives."""
    return name in ("tf.function", "tf.GradientTape")


def known(machine: Machine, state: State, name: str, site: Site) -> Value | None:
    """Return what calling `name` gives where that makes a graph function, a tape or a variable; else None."""
    if name == "tf.function":
        return _graph_function(machine, state, site)
    if name == "tf.GradientTape":
        noted = machine.record(name, site, state)
        machine.last_tape = noted
        return Produced(noted)
    return None


def _graph_function(machine: Machine, state: State, site: Site) -> Value:
    noted = machine.record("tf.function", site, state)
    function = noted.argument("func")
    if function is None:
        return Partial(External("tf.function"), (), dict(site.kwargs))
    options = {name: value for name, value in site.kwargs.items() if name != "func"}
    made = GraphFunction(function, noted, options)
    if not machine.muted:
        machine.program.functions.append(made)
    return made


def call_graph_function(machine: Machine, state: State, graph: GraphFunction, site: Site) -> Value:
    """Call a ``tf.function``: its body is traced."""
    inner = graph.function
    callee = f"{inner.module.name}:{inner.qualname}" if isinstance(inner, Function) else "tf.function()"
    noted = machine.record(callee, site, state, receiver=graph)
    if not machine.muted:
        graph.calls.append(noted)
    outer = state.context
    state.context = outer.inside(Region(site.location, "graph", owner=graph))
    if isinstance(inner, Function):
        result = machine.follow(inner, site.args, site.kwargs, state.context, open_call=site.open)
    else:
        result = machine.call(inner, site, state)
    state.context = outer
    return result


def method(machine: Machine, state: State, graph: GraphFunction, name: str, site: Site) -> Value:
    """A method of a graph function."""
    if name in ("get_concrete_function", "__call__"):
        call_graph_function(machine, state, graph, site)
        return graph
    if name == "python_function":
        return machine.call(graph.function, site, state)
    return Produced(machine.record(f"tf.function().{name}", site, state, receiver=graph))


def method_of_type(machine: Machine, state: State, base: Value, kind: str, name: str, site: Site) -> Value:
    """Return what a method of a TensorFlow or Keras object of known type gives."""
    noted = machine.record(f"{kind}.{name}", site, state, receiver=base)
    if kind == "keras.optimizers.Optimizer" and name in _STEPS:
        if name == "minimize":
            callbacks.follow_arguments(machine, state, site)
        if not _builds_graph(noted, name):
            training.note_step(machine, state, noted)
        return Tensor(noted)
    if kind == "tf.distribute.Strategy":
        return _method_of_strategy(machine, state, base, name, site, noted.callee)
    if kind == "keras.layers.Layer" and name == "adapt":
        training.note_pipelines(machine, noted.argument("data", 0), "adapt", noted)
    callbacks.follow_arguments(machine, state, site)
    if kind in ("keras.metrics.Metric", "keras.losses.Loss") or any(isinstance(a, Tensor) for a in site.args):
        return Tensor(noted, parents=site.args)
    return Produced(noted)


#: What gives gradients where a graph is built to be run by a session.
_SESSION_GRADIENTS = ("tf.gradients", "tf.compat.v1.gradients", "keras.optimizers.Optimizer.compute_gradients")


def _builds_graph(noted: Call, name: str) -> bool:
    """Say whether an optimizer's call makes an op of a TensorFlow 1 graph: a session runs that, and no Python.

    Outside a graph function, TensorFlow 2 has `minimize` of a function, or of a tensor with its tape, and takes
    gradients from a tape.
    """
    if noted.context.in_graph:
        return False
    if name == "minimize":
        return isinstance(noted.argument("loss", 0), Tensor) and noted.argument("tape") is None
    given = noted.args[0] if noted.args else next(iter(noted.kwargs.values()), None)
    callees = (
        part.origin.callee if isinstance(part, Tensor) and part.origin else getattr(part, "callee", "")
        for part in walk(given)
    )
    return any(callee in _SESSION_GRADIENTS for callee in callees)


def _method_of_strategy(machine: Machine, state: State, base: Value, name: str, site: Site, callee: str) -> Value:
    if name in ("run", "experimental_run_v2", "experimental_run"):
        function = site.args[0] if site.args else site.kwargs.get("fn")
        given = site.kwargs.get("args") or (site.args[1] if len(site.args) > 1 else None)
        named = site.kwargs.get("kwargs")
        args = given.items if isinstance(given, Items) else ()
        kwargs = {str(k): v for k, v in named.items.items()} if isinstance(named, Mapping) else {}
        if function is None:
            return Tensor()
        is_open = given is not None and not isinstance(given, Items)
        return machine.call(function, Site(site.location, args, kwargs, is_open), state)
    if name in ("experimental_distribute_dataset", "experimental_distribute_values_from_function"):
        return datasets.distributed(site.args[0]) if site.args else Tensor()
    if "datasets_from_function" in name and site.args:
        made = [
            callbacks.call_back(machine, state, option, site.location)
            for option in options_of(site.args[0])
            if isinstance(option, Function | Partial)
        ]
        return datasets.distributed(joins.join_all(made))
    noted = machine.record(callee, site, state, receiver=base) if name == "extended" else None
    if name in ("reduce", "gather", "experimental_local_results"):
        return Tensor(noted, parents=site.args)
    return Produced(machine.program.calls[-1]) if machine.program.calls and not machine.muted else Tensor()
