"""Training where it happens: ``fit``, ``train_on_batch``, and loops of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import api, attributes, callbacks, datasets
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Context, Loop, Region
from tflint_gpu.program.questions import is_true, leaves, options_of
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Class,
    Dataset,
    Function,
    Generator,
    GraphFunction,
    Instance,
    Mapping,
    Partial,
    Produced,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model, Pipeline, Step, TrainingRun

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.machine import Machine

_FITS = frozenset({"fit", "fit_generator"})
_USES = frozenset({"evaluate", "predict", "evaluate_generator", "predict_generator"})


def model_method(
    machine: Machine, state: State, model: Model | None, receiver: Value, name: str, site: Site
) -> Value:
    """Return what a method of a Keras model gives; `model` is None where only its being one is known."""
    noted = machine.record(f"keras.Model.{name}", site, state, receiver=receiver)
    if name in _FITS:
        _fit(machine, state, model, noted)
    elif name == "train_on_batch":
        _train_on_batch(machine, state, model, noted)
    elif name == "compile":
        _compile(machine, state, model, noted)
    elif name in _USES:
        data = noted.argument("x") or noted.argument("generator", 0)
        note_pipelines(machine, data, "inference", noted)
        _follow_input(machine, state, data, noted)
        _follow_callbacks(machine, state, model, noted)
    elif name in ("add_loss", "add_metric"):
        callbacks.follow_arguments(machine, state, site)
    return Produced(noted)


# --- compile


def _compile(machine: Machine, state: State, model: Model | None, noted: Call) -> None:
    if model is not None:
        model.compiles.append(noted)
    eager = is_true(noted.argument("run_eagerly"))
    for name in ("loss", "metrics", "weighted_metrics"):
        for part in _leaves(noted.argument(name)):
            _follow_objective(machine, state, part, noted.location, eager=eager)


def _leaves(value: Value | None) -> list[Value]:
    return [option for leaf in leaves(value) for option in options_of(leaf)]


def _follow_objective(machine: Machine, state: State, part: Value, location: Location, *, eager: bool) -> None:
    arguments = (Tensor(), Tensor())
    if isinstance(part, Function | Partial | GraphFunction):
        machine.follow_in(part, arguments, Region(location, "loss", eager=eager), state)
    elif isinstance(part, Instance):
        follow_loss_object(machine, state, part, eager=eager)


def follow_loss_object(machine: Machine, state: State, instance: Instance, *, eager: bool = False) -> None:
    """Follow ``call`` of a loss, or ``update_state`` of a metric, that the project defines."""
    for name in ("call", "update_state"):
        method = instance.cls.find(name)
        if isinstance(method, Function):
            bound = attributes.bound_to(method, instance)
            region = Region(instance.cls.location, "loss", eager=eager)
            machine.follow_in(bound, (Tensor(), Tensor()), region, state)


# --- fit


def _fit(machine: Machine, state: State, model: Model | None, noted: Call) -> None:
    data = noted.argument("x") or noted.argument("generator", 0)
    if model is not None:
        model.trained = True
    validation = next(iter(note_pipelines(machine, noted.argument("validation_data"), "validation", noted)), None)
    pipelines: list[Pipeline | None] = [*note_pipelines(machine, data, "train", noted)] or [None]
    if not machine.muted:
        for pipeline in pipelines:
            machine.program.runs.append(
                TrainingRun(
                    "fit",
                    noted.location,
                    noted.qualname,
                    noted.context,
                    noted,
                    loop_of(noted.context),
                    model,
                    data,
                    pipeline,
                    validation,
                )
            )
    _follow_input(machine, state, data, noted)
    _follow_step(machine, state, model, noted)
    _follow_callbacks(machine, state, model, noted)


def note_pipelines(machine: Machine, data: Value | None, role: str, consumer: Call | Loop) -> list[Pipeline]:
    """Note the datasets among the alternatives of `data` as used for `role`, and return them."""
    found = [
        Pipeline(option, role, consumer.location, consumer, option.distributed)
        for option in (options_of(data) if data is not None else ())
        if isinstance(option, Dataset)
    ]
    if not machine.muted:
        machine.program.pipelines.extend(found)
    return found


def _follow_step(machine: Machine, state: State, model: Model | None, noted: Call) -> None:
    """Follow what ``fit`` runs of a model of the project: its own ``train_step``, else its forward pass."""
    if model is None or model.instance is None:
        return
    eager = any(is_true(call.argument("run_eagerly")) for call in model.compiles)
    for name, kind in (("train_step", "train-step"), ("test_step", "test-step")):
        own = model.instance.cls.find(name)
        if isinstance(own, Function | GraphFunction):
            region = Region(noted.location, kind, eager=eager, owner=noted)
            machine.follow_in(attributes.bind(own, model), (Tensor(),), region, state)
        elif name == "train_step":
            region = Region(noted.location, kind, eager=eager, owner=noted)
            machine.follow_in(model, (Tensor(),), region, state)


def _follow_callbacks(machine: Machine, state: State, model: Model | None, noted: Call) -> None:
    for part in _leaves(noted.argument("callbacks")):
        if isinstance(part, Instance):
            if model is not None:
                part.attributes.setdefault("model", model)
            follow_callback(machine, state, part, noted)
        elif isinstance(part, Produced) and part.callee == "keras.callbacks.LambdaCallback":
            for name, value in part.call.kwargs.items():
                _follow_callback_method(machine, state, name, value, noted)


def follow_callback(machine: Machine, state: State, callback: Instance, owner: Call | None) -> None:
    """Follow the methods of a callback as Keras calls them."""
    for name in (*api.BATCH_CALLBACKS, *api.EPOCH_CALLBACKS):
        method = callback.cls.find(name)
        if isinstance(method, Function):
            _follow_callback_method(machine, state, name, attributes.bind(method, callback), owner)


def _follow_callback_method(machine: Machine, state: State, name: str, method: Value, owner: Call | None) -> None:
    if name not in api.BATCH_CALLBACKS and name not in api.EPOCH_CALLBACKS:
        return
    if not isinstance(method, Function | Partial):
        return
    kind = "batch-callback" if name in api.BATCH_CALLBACKS else "epoch-callback"
    location = method.location if isinstance(method, Function) else (owner.location if owner else None)
    assert location is not None
    arguments = [Unknown("index"), Mapping({}, Unknown("log"))][: max(1, callbacks.required_arguments(method))]
    machine.follow_in(method, arguments, Region(location, kind, owner=owner), state)


def _follow_input(machine: Machine, state: State, data: Value | None, noted: Call) -> None:
    """Follow the Python code that makes the input: a generator's body, ``__getitem__`` of a Sequence."""
    region = Region(noted.location, "loader", owner=noted)
    for option in options_of(data) if data is not None else ():
        if isinstance(option, Generator):
            datasets.note_element(machine, noted, machine.draw(option, state.context.inside(region)))
        elif isinstance(option, Instance):
            method = option.cls.find("__getitem__") or option.cls.find("__iter__")
            if isinstance(method, Function):
                arguments = (Unknown("index"),) if method.name == "__getitem__" else ()
                result = machine.follow_in(attributes.bind(method, option), arguments, region, state)
                if isinstance(result, Generator):
                    result = machine.draw(result, state.context.inside(region))
                datasets.note_element(machine, noted, result)
        elif isinstance(option, Function | Class):
            machine.call(option, Site(noted.location, (), {}), state)


# --- loops of one's own


def loop_of(context: Context) -> Loop | None:
    """Return the innermost Python loop around `context`, across graph regions and callers."""
    return next(iter(context.all_loops), None)


def _train_on_batch(machine: Machine, state: State, model: Model | None, noted: Call) -> None:
    if model is not None:
        model.trained = True
    if machine.muted:
        return
    loop = _data_loop(noted.context) or loop_of(noted.context)
    pipeline = _pipeline_of(machine, loop)
    machine.program.runs.append(
        TrainingRun(
            "train_on_batch",
            noted.location,
            noted.qualname,
            noted.context,
            noted,
            loop,
            model,
            noted.argument("x"),
            pipeline,
        )
    )
    _follow_step(machine, state, model, noted)


def note_step(machine: Machine, state: State, applied: Call) -> None:
    """Note a gradient step and the loop that trains with it."""
    if machine.muted:
        return
    context = applied.context
    tape = machine.last_tape
    place = tape.location if tape is not None and tape.module is applied.module else applied.location
    eager = not context.in_graph
    step = Step(applied, place, eager, next(iter(context.loops), None) if eager else loop_of(context))
    machine.program.steps.append(step)
    if {"train-step", "dataset", "loader"} & set(context.regions):
        return
    loop = _data_loop(context) or step.loop
    if loop is None or any(run.loop is loop and run.step is not None for run in machine.program.runs):
        return
    pipeline = _pipeline_of(machine, loop)
    machine.program.runs.append(
        TrainingRun(
            "loop",
            loop.location,
            loop.qualname,
            context,
            None,
            loop,
            _model_of(applied),
            loop.iterable,
            pipeline,
            None,
            step,
        )
    )
    del state


def _model_of(applied: Call) -> Model | None:
    """Return the model whose variables an ``apply_gradients`` call names."""
    from tflint_gpu.program.questions import walk
    from tflint_gpu.program.values import Attribute

    for argument in (*applied.args, *applied.kwargs.values()):
        for part in walk(argument):
            if isinstance(part, Attribute) and isinstance(part.base, Model):
                part.base.trained = True
                return part.base
    return None


def _data_loop(context: Context) -> Loop | None:
    return next((loop for loop in context.all_loops if _datasets(loop.iterable)), None)


def _datasets(value: Value | None) -> list[Dataset]:
    return [o for o in options_of(value) if isinstance(o, Dataset)] if value is not None else []


def _pipeline_of(machine: Machine, loop: Loop | None) -> Pipeline | None:
    """Return the dataset that a training loop draws from, by iteration or by ``next``."""
    if loop is None:
        return None
    found = note_pipelines(machine, loop.iterable, "train", loop)
    if found:
        return found[0]
    for dataset, draw in machine.draws:
        if loop in draw.context.all_loops:
            found = note_pipelines(machine, dataset, "train", loop)
            if found:
                return found[0]
    return None


def note_loop_over_data(machine: Machine, state: State, loop: Loop) -> None:
    """Note what a loop over a dataset that trains nothing is for."""
    del state
    if any(run.loop is loop for run in machine.program.runs):
        return
    callees = {call.callee for call in loop.calls}
    if callees & {"keras.Model.__call__", "keras.Model.predict", "keras.Model.predict_on_batch"}:
        role = "inference"
    else:
        role = "display" if any(d.last.op == "take" for d in _datasets(loop.iterable)) else "other"
    note_pipelines(machine, loop.iterable, role, loop)
