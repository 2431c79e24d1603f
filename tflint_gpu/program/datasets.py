"""tf.data: sources, transformations, and what the functions handed to them do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program import api, callbacks, joins, loops
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Region
from tflint_gpu.program.questions import leaves, options_of
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Choice,
    Class,
    Const,
    Dataset,
    Element,
    External,
    Function,
    GraphFunction,
    Instance,
    Items,
    Mapping,
    Partial,
    Produced,
    Stage,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine

_RETURNS_TENSOR = frozenset(["get_single_element", "reduce", "cardinality", "get_next", "get_next_as_optional"])
_RETURNS_ITERATOR = frozenset(["as_numpy_iterator", "make_one_shot_iterator", "make_initializable_iterator"])


def knows(name: str) -> bool:
    """Say whether `known` may know what calling `name` gives."""
    tables = (api.DATASET_SOURCES, api.DATASET_JOINS, api.DATASET_APPLY)
    return any(name in table for table in tables) or name.startswith("tf.data.Dataset.")


def known(machine: Machine, state: State, name: str, site: Site) -> Value | None:
    """Return the dataset that calling `name` gives; None where that is no affair of tf.data."""
    if name in api.DATASET_SOURCES:
        return source(machine, state, name, site)
    if name in api.DATASET_JOINS:
        return _joined(machine, state, name, site)
    if name in api.DATASET_APPLY:
        return Produced(machine.record(name, site, state))
    if name.startswith("tf.data.Dataset."):
        return _unbound(machine, state, name.rpartition(".")[2], site)
    return None


def _unbound(machine: Machine, state: State, method_name: str, site: Site) -> Value | None:
    """``tf.data.Dataset.map(ds, f)``: a method called through the class."""
    if site.args and isinstance(site.args[0], Dataset):
        return method(machine, state, site.args[0], method_name, callbacks.without_first(site))
    return None


def source(machine: Machine, state: State, name: str, site: Site) -> Value:
    """Make the dataset of a source."""
    first = len(machine.program.calls)
    noted = machine.record(name, site, state)
    op = api.DATASET_SOURCES[name]
    if op == "from_generator":
        _follow_generator(machine, state, noted)
    stage = Stage(op, noted, noted.argument("generator"), tuple(machine.program.calls[first + 1 :]))
    dataset = Dataset((stage,))
    if op == "tfds":
        return _from_tfds(noted, dataset)
    if op.endswith("_from_directory") and noted.constant("subset") == "both":
        return Items("tuple", (dataset, dataset))
    return dataset


def _from_tfds(noted: Call, dataset: Dataset) -> Value:
    split = noted.argument("split")
    value: Value = dataset
    if isinstance(split, Items) and split.complete:
        value = Items(split.kind, tuple(dataset for _ in split.items))
    elif split is None or (isinstance(split, Const) and split.value is None):
        value = Mapping({}, dataset)
    elif not isinstance(split, Const):
        value = Unknown("split")
    if noted.constant("with_info") is True:
        return Items("tuple", (value, Unknown("info")))
    return value


def _joined(machine: Machine, state: State, name: str, site: Site) -> Value:
    noted = machine.record(name, site, state)
    parts: list[Value] = []
    for argument in site.args if len(site.args) > 1 else (noted.argument("datasets", 0),):
        parts.extend(leaves(argument))
    inner = [part for part in parts if isinstance(part, Dataset)]
    if not parts or len(inner) != len(parts):
        return Unknown("join of unknown")
    return Dataset((Stage(name.rpartition(".")[2], noted, nested=tuple(inner)),))


def method(machine: Machine, state: State, dataset: Dataset, name: str, site: Site) -> Value:
    """Return what ``dataset.name(…)`` gives."""
    callee = f"tf.data.Dataset.{name}"
    if name == "apply":
        return _applied(machine, state, dataset, machine.record(callee, site, state, dataset))
    if name == "with_options":
        noted = machine.record(callee, site, state, dataset)
        return _with_options(machine, dataset, noted.argument("options"))
    if name in api.DATASET_METHODS:
        return _stage(machine, state, dataset, name, callee, site)
    noted = machine.record(callee, site, state, dataset)
    if name == "reduce":
        function = noted.argument("reduce_func")
        _follow(machine, state, noted, function, dataset, 2)
    if name in _RETURNS_ITERATOR or name in ("__iter__", "options"):
        return dataset
    if name in _RETURNS_TENSOR:
        return Tensor(noted, parents=(Element(dataset),))
    return Produced(noted)


def _stage(machine: Machine, state: State, dataset: Dataset, op: str, callee: str, site: Site) -> Value:
    noted = machine.record(callee, site, state, dataset)
    if op == "concatenate":
        others = leaves(noted.argument("dataset"))
        if not all(isinstance(other, Dataset) for other in others):
            return Unknown("concatenated with unknown")
        return extend(dataset, Stage(op, noted, nested=tuple(o for o in others if isinstance(o, Dataset))))
    return extend(dataset, stage_of(machine, state, noted, op, dataset))


def stage_of(machine: Machine, state: State, noted: Call, op: str, dataset: Dataset | None) -> Stage:
    """Make the stage of a transformation and follow the function it is given."""
    parameter = api.STAGE_FUNCTIONS.get(op)
    if parameter is None:
        return Stage(op, noted)
    function = noted.argument(parameter)
    first, touched = len(machine.program.calls), machine.variables_touched
    result = _follow(machine, state, noted, function, dataset, None)
    inside = tuple(machine.program.calls[first:])
    nested = tuple(option for option in options_of(result) if isinstance(option, Dataset))
    return Stage(op, noted, function, inside, nested, captures_variable=machine.variables_touched > touched)


def extend(dataset: Dataset, stage: Stage) -> Dataset:
    """Return `dataset` with one more stage."""
    return Dataset((*dataset.stages, stage), dataset.options, dataset.distributed)


def _follow(
    machine: Machine, state: State, noted: Call, function: Value | None, dataset: Dataset | None, count: int | None
) -> Value:
    """Follow a function as a stage runs it: traced, on elements."""
    results: list[Value] = []
    element = Tensor(parents=(Element(dataset),)) if dataset is not None else Tensor()
    for option in options_of(function) if function is not None else ():
        if not isinstance(
            option, Function | Partial | GraphFunction | External | Produced | Instance | Model | Class
        ):
            continue
        wanted = count if count is not None else max(1, callbacks.required_arguments(option))
        arguments = tuple(Tensor(parents=element.parents) for _ in range(wanted))
        region = Region(noted.location, "dataset", owner=noted, dataset=dataset)
        outer = state.context
        state.context = outer.inside(region)
        results.append(machine.call(option, Site(noted.location, arguments, {}), state))
        state.context = outer
    return joins.join_all(results) if results else Unknown("no function")


def _follow_generator(machine: Machine, state: State, noted: Call) -> None:
    given = noted.argument("args")
    arguments = tuple(Tensor() for _ in given.items) if isinstance(given, Items) else ()
    outer = state.context
    state.context = outer.inside(Region(noted.location, "loader", owner=noted))
    for option in options_of(noted.argument("generator") or Unknown()):
        if isinstance(option, Function | Partial | Class | Instance):
            produced = machine.call(option, Site(noted.location, arguments, {}), state)
            for element in draw_all(machine, state, produced):
                note_element(machine, noted, element)
    state.context = outer


def draw_all(machine: Machine, state: State, value: Value) -> list[Value]:
    """Run the bodies of the generators among the alternatives of `value`, in the context at hand.

    Return an element of each alternative.
    """
    return [loops.element_of(machine, state, option) for option in options_of(value)]


def note_element(machine: Machine, consumer: Call, element: Value) -> None:
    """Note what Python input hands to `consumer`."""
    if not machine.muted:
        machine.program.elements.append((consumer, element))


def _applied(machine: Machine, state: State, dataset: Dataset, noted: Call) -> Value:
    results: list[Value] = []
    for option in options_of(noted.argument("transformation_func") or Unknown()):
        if isinstance(option, Produced) and option.callee in api.DATASET_APPLY:
            op = api.DATASET_APPLY[option.callee]
            results.append(extend(dataset, stage_of(machine, state, option.call, op, dataset)))
        elif isinstance(option, Function | Partial | GraphFunction | Instance | Class | External):
            results.append(machine.call(option, Site(noted.location, (dataset,), {}), state))
        else:
            results.append(Unknown("apply of unknown"))
    return joins.join_all(results)


def _with_options(machine: Machine, dataset: Dataset, options: Value | None) -> Value:
    settings: dict[str, Value] = dict(dataset.options)
    for option in options_of(options) if options is not None else ():
        settings.update(machine.attributes.get(id(option), (option, {}))[1])
        if not isinstance(option, Produced):
            settings["?"] = Unknown("options")
    return Dataset(dataset.stages, settings, dataset.distributed)


def distributed(dataset: Value) -> Value:
    """Return `dataset` as a strategy hands it to its replicas."""
    match dataset:
        case Dataset(stages=stages, options=options):
            return Dataset(stages, options, distributed=True)
        case Choice(options=options):
            return joins.join_all(distributed(option) for option in options)
        case _:
            return Unknown("distributed")
