"""What is known of elements that Python code picks out of arrays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tflint_gpu.checks.generators import calls_inside, costly, generator_function
from tflint_gpu.checks.pipelines import runs_once
from tflint_gpu.checks.sizes import size_of
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Region
from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Const,
    Element,
    Items,
    Mapping,
    Operation,
    Produced,
    Subscript,
    Value,
)
from tflint_gpu.program.views import Program

#: Arrays larger than this had better not be copied into the runtime.
COPIED_AT_MOST = 10**9

#: Functions that keep the rows of the array they are given first.
_KEEPING = frozenset(
    {
        *("numpy.array", "numpy.asarray", "numpy.float32", "numpy.expand_dims", "numpy.reshape", "numpy.squeeze"),
        *("numpy.take", "numpy.stack", "numpy.ascontiguousarray", "numpy.concatenate", "numpy.vstack"),
        *("tf.convert_to_tensor", "tf.constant", "tf.cast", "keras.utils.to_categorical"),
    }
)

#: Methods that do, by the end of their canonical name.
_KEEPING_METHODS = (
    *(".astype", ".copy", ".to_numpy", ".reshape", ".squeeze", ".to_list", ".tolist", ".iterrows", ".itertuples"),
    *(".drop", ".pop", ".fillna", ".dropna", ".transform", ".fit_transform", ".sample", ".sort_values"),
)

#: Makers of arrays and tables that lie in memory, beside those that start with one of `_MADE`.
_ARRAYS = frozenset(
    {
        *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "numpy.linspace", "numpy.arange"),
        *("numpy.zeros", "numpy.ones", "numpy.eye", "numpy.full", "pandas.read_csv", "pandas.read_parquet"),
        *("pandas.read_pickle", "pandas.read_excel", "pandas.read_table", "pandas.DataFrame"),
        *("sklearn.model_selection.train_test_split", "scipy.io.loadmat"),
    }
)
_MADE = ("numpy.random.", "keras.datasets.", "sklearn.datasets.")
#: What a loop of one's own draws a batch from a generator with.
NEXT = "builtins.next"
_ARITHMETIC = ("+", "-", "*", "/", "//", "**")


@dataclass(frozen=True, slots=True)
class Picked:
    """An element that code picks out of arrays: `arrays` made those, `rows` says that it holds many rows."""

    arrays: tuple[Call, ...]
    rows: bool


def picked(element: Value) -> Picked | None:
    """Return what `element` is picked from where every part of it is rows of an array in memory, else None.

    Labels that are literal numbers pass; a memory map, a file that is opened and any work beyond scaling do not.
    """
    parts = _leaves(element)
    found = [_picked(part) for part in parts if not isinstance(part, Const)]
    if not found or any(one is None for one in found):
        return None
    known = [one for one in found if one is not None]
    arrays = {call: None for one in known for call in one.arrays}
    return Picked(tuple(arrays), any(one.rows for one in known))


def _leaves(value: Value) -> list[Value]:
    match value:
        case Items(kind="tuple" | "list", items=items, complete=True):
            return [leaf for item in items for leaf in _leaves(item)]
        case Mapping(items=items, other=None):
            return [leaf for item in items.values() for leaf in _leaves(item)]
        case _:
            return [value]


def _picked(value: Value | None) -> Picked | None:
    """Follow `value` back to its array through indices, loops, views and scaling by numbers."""
    match value:
        case Subscript(base=base, key=key):
            inner = _picked(base)
            return Picked(inner.arrays, inner.rows and _many(key)) if inner else None
        case Element(source=source):
            inner = _picked(source)
            return Picked(inner.arrays, rows=False) if inner else None
        case Attribute(base=base, name="values" | "T" | "iloc" | "loc" | "index"):
            return _picked(base)
        case Operation(operator=operator, operands=(left, right)) if operator in _ARITHMETIC:
            number = isinstance(left, Const) or isinstance(right, Const)
            return _picked(right if isinstance(left, Const) else left) if number else None
        case Choice(options=options):
            found = [_picked(option) for option in options]
            return found[0] if all(found) else None
        case Produced(call=call):
            return _made(call)
        case _:
            return None


def _made(call: Call) -> Picked | None:
    name = call.callee
    if name in _KEEPING:
        return _picked(call.args[0] if call.args else None)
    if name.endswith(_KEEPING_METHODS) and call.receiver is not None:
        return _picked(call.receiver)
    if name in _ARRAYS or name.startswith(_MADE):
        mapped = call.argument("mmap_mode", 1) if name == "numpy.load" else None
        in_memory = mapped is None or (isinstance(mapped, Const) and mapped.value is None)
        return Picked((call,), rows=True) if in_memory and not call.context.region else None
    return None


def _many(key: Value) -> bool:
    """Say whether an index picks several rows: a slice, or an array of indices."""
    first = key.items[0] if isinstance(key, Items) and key.items else key
    match first:
        case Operation(operator="slice"):
            return True
        case Subscript(base=base, key=inner):
            return _many(inner) or (isinstance(base, Subscript) and _many(base.key))
        case Produced(callee=callee):
            return not callee.startswith(("builtins.", "random."))
        case _:
            return False


def over_arrays(program: Program) -> Iterator[tuple[Call, Picked]]:
    """Yield the calls that draw training data from Python code which only picks rows out of arrays in memory.

    The calls are ``from_generator``, ``fit``, and ``next`` in a training loop; python-generator-input leaves those
    to this rule.
    """
    elements: dict[Call, list[Value]] = {}
    for call, element in program.elements:
        elements.setdefault(call, []).append(element)
    for call, values in elements.items():
        if call.context.debug or not _trains(call, program):
            continue
        found = [picked(value) for value in values]
        known = [one for one in found if one is not None]
        if len(known) == len(found) and not _works(call, program) and not _too_large(known):
            yield call, Picked(known[0].arrays, all(one.rows for one in known))


def _trains(call: Call, program: Program) -> bool:
    """Say whether training draws from `call`, in every epoch anew."""
    if call.callee == NEXT:
        loops = {id(loop) for loop in call.context.loops}
        return any(id(run.loop) in loops for run in program.runs if run.kind != "fit")
    if call.callee != "tf.data.Dataset.from_generator":
        return call.callee in ("keras.Model.fit", "keras.Model.fit_generator")
    return any(
        stage.call is call and not runs_once(pipeline.dataset, stage)
        for pipeline in program.pipelines
        if pipeline.role == "train"
        for stage in pipeline.stages
    )


def _works(call: Call, program: Program) -> bool:
    """Say whether the code does more than pick: reads, decodes or augments samples, or calls what is not known."""
    if call.callee == NEXT:
        function = generator_function(call.args[0])
        inside = list(calls_inside(program, function)) if function is not None else []
    else:
        inside = [
            other
            for other in program.calls
            if other.context.region == "loader"
            and any(isinstance(frame, Region) and frame.owner is call for frame in other.context)
        ]
    return costly(inside) is not None or any(not other.callee for other in inside)


def _too_large(found: list[Picked]) -> bool:
    sizes = [size_of(Produced(call)) for one in found for call in one.arrays]
    return sum(size.bytes or 0 for size in sizes if size is not None) > COPIED_AT_MOST
