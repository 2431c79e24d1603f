"""What a variable holds after branches, and what is true of a value whatever the run does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import (
    MAX_CHOICES,
    Choice,
    Class,
    Const,
    Dataset,
    External,
    Function,
    Generator,
    GraphFunction,
    Instance,
    Items,
    Mapping,
    Partial,
    Stage,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model


def join(first: Value, second: Value) -> Value:
    """Return what a variable holds after two branches of which one ran."""
    if first is second:
        return first
    match first, second:
        case Const(value=a, soft=s), Const(value=b, soft=t) if type(a) is type(b) and a == b:
            return Const(a, s or t)
        case Dataset(), Dataset():
            joined = _join_datasets(first, second)
            if joined is not None:
                return joined
        case Tensor(symbolic=a), Tensor(symbolic=b) if a == b and not a:
            return first
        case Unknown(), Unknown():
            return first
    options: list[Value] = []
    for value in (first, second):
        for option in options_of(value):
            if not any(_same(option, known) for known in options):
                options.append(option)
    if len(options) == 1:
        return options[0]
    return Choice(tuple(options)) if len(options) <= MAX_CHOICES else Unknown("too many branches")


def _same(first: Value, second: Value) -> bool:
    if first is second or (isinstance(first, Unknown) and isinstance(second, Unknown)):
        return True
    if isinstance(first, Const) and isinstance(second, Const):
        return type(first.value) is type(second.value) and bool(first.value == second.value)
    if isinstance(first, External) and isinstance(second, External):
        return first.name == second.name
    if isinstance(first, Dataset) and isinstance(second, Dataset):
        return [s.call for s in first.stages] == [s.call for s in second.stages]
    return False


def join_all(values: Iterable[Value]) -> Value:
    """Join any number of values."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result if result is not None else Unknown("nothing")


def _join_datasets(first: Dataset, second: Dataset) -> Dataset | None:
    """Join a chain with the same chain carried further: the surplus may be skipped. None for other pairs."""
    short, long = (first, second) if len(first.stages) <= len(second.stages) else (second, first)
    rest = list(long.stages)
    kept: list[Stage] = []
    for stage in short.stages:
        while rest and rest[0].call is not stage.call:
            kept.append(replace(rest.pop(0), conditional=True))
        if not rest:
            return None
        other = rest.pop(0)
        kept.append(stage if stage.conditional else other)
    kept.extend(replace(stage, conditional=True) for stage in rest)
    options = {**short.options, **long.options}
    return Dataset(tuple(kept), options, first.distributed or second.distributed)


def truth(value: Value) -> bool | None:
    """Return whether `value` is true, None where that depends on the run."""
    match value:
        case Const(value=plain, soft=soft):
            return None if soft else bool(plain)
        case Items(items=items, complete=complete):
            return bool(items) if complete else (True if items else None)
        case Mapping(items=entries, other=other):
            return bool(entries) if other is None else (True if entries else None)
        case Dataset() | Model() | Instance() | Function() | Class() | GraphFunction() | Partial() | Generator():
            return True
        case _:
            return None


def soften(value: Value) -> Value:
    """Return `value` as a default that a caller may override."""
    match value:
        case Const(value=plain):
            return Const(plain, soft=True)
        case _:
            return value
