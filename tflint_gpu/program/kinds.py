"""Of which of Python's own classes a value is, where the text settles that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.program.values import (
    Const,
    Dataset,
    External,
    Items,
    Operation,
    Produced,
    Subscript,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import Site, State

_DATASET = "tf.data.Dataset"

#: Classes that a value is surely of, or surely not.
_CLASSES = frozenset(
    {
        *(f"builtins.{name}" for name in ("str", "bytes", "int", "float", "bool", "list", "tuple", "set", "dict")),
        _DATASET,
    }
)

#: What makes lists, of file names above all.
_LISTS = frozenset(
    {"glob.glob", "os.listdir", "builtins.sorted", "builtins.list", "tf.io.gfile.glob", "tf.io.gfile.listdir"}
)

#: Operations on known and unknown parts that make text.
_TEXTS = ("path", "format")


def class_of(value: Value) -> str | None:
    """Return the canonical name of the class that `value` is of; None where the run may decide it."""
    match value:
        case Const(value=None):
            return None  # a default: what takes its place is of any class
        case Const(value=literal):
            return f"builtins.{type(literal).__name__}"
        case Items(kind="list" | "tuple" | "set" as kind):
            return f"builtins.{kind}"
        case Produced(callee=callee) if callee in _LISTS:
            return "builtins.list"
        case Subscript(base=base, key=Operation(operator="slice")) if class_of(base) == "builtins.list":
            return "builtins.list"
        case Operation(operator=operator) if operator in _TEXTS:
            return "builtins.str"
        case Dataset():
            return _DATASET
        case _:
            return None


def is_instance(machine: Machine, state: State, site: Site) -> Value | None:
    """``isinstance(x, …)``: folded where the classes of both sides are known."""
    if len(site.args) != 2:
        return None
    value, asked = site.args
    own, names = class_of(value), _names(asked)
    if own is None or names is None:
        return Unknown("depends on the run")
    found = own in names or (own == "builtins.bool" and "builtins.int" in names)
    return Const(found, isinstance(value, Const) and value.soft)


def _names(asked: Value) -> frozenset[str] | None:
    """Return the names of the classes that are asked for, None where one is not of `_CLASSES`."""
    parts = asked.items if isinstance(asked, Items) and asked.complete else (asked,)
    names = [part.name if isinstance(part, External) else "" for part in parts]
    return frozenset(names) if _CLASSES.issuperset(names) else None
