"""Arithmetic, comparisons and subscripts: folded on literals, symbolic on the rest."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from tflint_gpu.program.calls import Call
from tflint_gpu.program.joins import join, join_all
from tflint_gpu.program.values import (
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
    Operation,
    Produced,
    Subscript,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

#: Longest text, and longest list put together from others, that is kept.
MAX_TEXT = 4096
MAX_ITEMS = 4096
#: A format that asks for a field of a thousand characters or more.
_WIDE = re.compile(r"%[^%a-zA-Z]*\d{4}")

_OPERATORS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.BitOr: ("|", operator.or_),
    ast.BitAnd: ("&", operator.and_),
    ast.BitXor: ("^", operator.xor),
    ast.MatMult: ("@", operator.matmul),
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b or a == b,
    ast.IsNot: lambda a, b: not (a is b or a == b),
}


def binary(op: ast.operator, left: Value, right: Value) -> Value:
    """Return ``left op right``, folded where both are literal."""
    symbol, function = _OPERATORS[type(op)]
    match left, right:
        case Const(value=a, soft=s), Const(value=b, soft=t):
            folded = _fold(symbol, function, a, b)
            return Const(folded[0], s or t) if folded else Unknown("does not fold")
        case (Tensor(), _) | (_, Tensor()):
            symbolic = any(isinstance(side, Tensor) and side.symbolic for side in (left, right))
            return Tensor(symbolic=symbolic, parents=(left, right), operator=symbol)
        case Items(kind=kind, items=a, complete=c), Items(items=b, complete=d) if symbol == "+":
            return bounded(kind, (*a, *b), complete=c and d)
        case Mapping(items=a, other=c), Mapping(items=b, other=d) if symbol == "|":
            return Mapping({**a, **b}, c or d)
        case Items(kind=kind, items=a), _ if symbol == "*":
            return Items(kind, a, complete=False)
        case Const(value=str()), _ if symbol == "%":
            return Operation("format", (left, right))
    if isinstance(left, Choice) and isinstance(right, Const):
        return join_all(binary(op, option, right) for option in left.options)
    return Operation(symbol, (left, right))


def _fold(symbol: str, function: Callable[[Any, Any], Any], a: Any, b: Any) -> tuple[Any] | None:
    if symbol in ("**", "<<") and not (isinstance(b, int | float) and abs(b) <= 128):
        return None
    if symbol == "*" and any(isinstance(side, str | bytes) for side in (a, b)):
        return None
    if symbol == "%" and isinstance(a, str | bytes) and _WIDE.search(str(a)):
        return None
    if symbol == "/" and isinstance(a, str) and isinstance(b, str):  # pathlib
        return (f"{a.rstrip('/')}/{b}",)
    try:
        result = function(a, b)
    except Exception:
        return None
    return (result,) if fits(result) else None


def fits(result: Any) -> bool:
    """Say whether a folded literal is small enough to be kept: texts may double with every line."""
    if isinstance(result, int):
        return result.bit_length() < 256
    return not isinstance(result, str | bytes) or len(result) <= MAX_TEXT


def bounded(kind: str, items: Iterable[Value], *, complete: bool = True) -> Items:
    """Return a list put together from others, cut off where it grows past `MAX_ITEMS`."""
    kept = tuple(islice(items, MAX_ITEMS + 1))
    return Items(kind, kept[:MAX_ITEMS], complete and len(kept) <= MAX_ITEMS)


_OPAQUE = object()


def _plain(value: Value) -> Any:
    """Return the Python object behind a literal, or `_OPAQUE`."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Items) and value.complete and all(isinstance(item, Const) for item in value.items):
        return tuple(item.value for item in value.items if isinstance(item, Const))
    return _OPAQUE


def subscript(base: Value, key: Value) -> Value:
    """Return ``base[key]``."""
    match base, key:
        case Items(items=items, complete=True), Const(value=int() as index) if -len(items) <= index < len(items):
            return items[index]
        case Items(kind=kind, items=items, complete=complete), Operation(operator="slice", operands=parts):
            return _slice(kind, items, parts) if complete else base
        case Items(items=items), _ if items:
            return join_all(items)
        case Mapping(items=items), Const(value=name) if hashable(name) and name in items:
            return items[name]
        case Mapping(items=items, other=other), Const():
            return other or Subscript(base, key)
        case Mapping(items=items, other=other), _:
            values = [*items.values(), *([other] if other else [])]
            return join_all(values) if values else Unknown("empty")
        case Choice(options=options), _:
            return join_all(subscript(option, key) for option in options)
        case Tensor(symbolic=symbolic), _:
            return Tensor(symbolic=symbolic, parents=(base, key), operator="[]")
        case Const(value=text), Const(value=int() as index):
            try:
                return Const(text[index], base.soft)
            except Exception:
                return Unknown("no such item")
        case Class(), _:
            return base
        case External(name="os.environ"), Const(value=str()):
            return Unknown("environment")
        case _:
            return Subscript(base, key)


#: Functions whose result is a mask of booleans.
_MASKS = frozenset(
    f"tf.{owner}{name}"
    for owner in ("", "math.")
    for name in (
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_nan", "is_inf", "is_finite"),
        *("logical_and", "logical_or", "logical_not", "logical_xor", "sequence_mask"),
    )
)


def is_mask(value: Value) -> bool:
    """Say whether `value` is certainly a tensor of booleans: comparisons, and what ``& | ~`` make of them."""
    match value:
        case Tensor(origin=None, operator="compare"):
            return True
        case Tensor(origin=None, operator="&" | "|" | "^" | "~", parents=parts):
            return all(is_mask(part) for part in parts)
        case Tensor(origin=Call(callee="tf.cast") as cast):
            kind = cast.argument("dtype", 1)
            name = kind.name if isinstance(kind, External) else kind.value if isinstance(kind, Const) else ""
            return name in ("tf.bool", "bool")
        case Tensor(origin=Call(callee=callee)):
            return callee in _MASKS
        case _:
            return False


def hashable(value: Any) -> bool:
    """Say whether `value` can be a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _slice(kind: str, items: tuple[Value, ...], parts: tuple[Value, ...]) -> Value:
    bounds: list[Any] = [part.value if isinstance(part, Const) else _OPAQUE for part in parts]
    if _OPAQUE in bounds:
        return Items(kind, items, complete=False)
    try:
        return Items(kind, items[slice(bounds[0], bounds[1], bounds[2])])
    except (TypeError, ValueError):
        return Items(kind, items, complete=False)


def store_item(mapping: Mapping, key: Value, value: Value) -> None:
    """Set ``mapping[key] = value``."""
    if isinstance(key, Const) and hashable(key.value):
        mapping.items[key.value] = value
    else:
        mapping.other = value if mapping.other is None else join(mapping.other, value)


def compare(op: ast.cmpop, left: Value, right: Value) -> Value:
    """Return ``left op right``, folded where that does not depend on the run."""
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if isinstance(op, ast.Is | ast.IsNot):
            return Const(isinstance(op, ast.IsNot))
        return Tensor(parents=(left, right), operator="compare")
    plain = _plain(right)
    if isinstance(left, Const) and plain is not _OPAQUE:
        try:
            outcome = _COMPARISONS[type(op)](left.value, plain)
        except Exception:
            return Unknown("does not compare")
        return Const(bool(outcome), left.soft or (isinstance(right, Const) and right.soft))
    if (
        isinstance(right, Const)
        and right.value is None
        and isinstance(op, ast.Is | ast.IsNot)
        and _is_object(left)
    ):
        return Const(isinstance(op, ast.IsNot))
    named = _compare_classes(op, left, right)
    return Operation("compare", (left, right)) if named is None else named


def _compare_classes(op: ast.cmpop, left: Value, right: Value) -> Value | None:
    """Return ``type(x) is list`` or ``type(x) in (list, tuple)`` where all are classes of Python, else None."""
    asked = right.items if isinstance(right, Items) and right.complete else (right,)
    names = [side.name for side in (left, *asked) if isinstance(side, External)]
    if len(names) <= len(asked) or not all(name.startswith("builtins.") for name in names):
        return None
    within = isinstance(op, ast.In | ast.NotIn)
    if within != isinstance(right, Items) or not isinstance(
        op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn
    ):
        return None
    return Const((names[0] in names[1:]) != isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn))


def _is_object(value: Value) -> bool:
    return isinstance(
        value,
        Dataset | Model | Instance | Function | Class | GraphFunction | Items | Mapping | Produced | Generator,
    )
