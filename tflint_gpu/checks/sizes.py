"""What is known of arrays' sizes: shapes and element widths, as far as literals in the code tell them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Choice, Const, External, Items, Operation, Produced, Subscript, Tensor, Value

#: Bytes per number by the last part of a dtype's name.
WIDTHS = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "uint16": 2,
    "int16": 2,
    "float16": 2,
    "bfloat16": 2,
    "half": 2,
    "uint32": 4,
    "int32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "double": 8,
    "float": 8,
    "int": 8,
}

#: Makers whose first argument is the shape, with the width of their default dtype.
_SHAPE_FIRST = {
    "numpy.zeros": 8,
    "numpy.ones": 8,
    "numpy.empty": 8,
    "numpy.full": 8,
    "numpy.random.random": 8,
    "numpy.random.random_sample": 8,
    "tf.zeros": 4,
    "tf.ones": 4,
    "tf.fill": 4,
    "tf.random.normal": 4,
    "tf.random.uniform": 4,
    "tf.random.truncated_normal": 4,
    "keras.random.normal": 4,
    "keras.random.uniform": 4,
}

#: Makers whose positional arguments are the dimensions.
_DIMENSIONS = ("numpy.random.rand", "numpy.random.randn")

#: Makers of the distributions of NumPy: the shape is the argument ``size``, at this position.
_SIZED = {"normal": 2, "uniform": 2, "integers": 2, "randint": 2, "standard_normal": 0, "random": 0, "choice": 1}


@dataclass(frozen=True, slots=True)
class Size:
    """Shape and bytes per number of an array; a dimension that is not known is None."""

    shape: tuple[int | None, ...]
    width: int

    @property
    def bytes(self) -> int | None:
        """Size of the whole array, None unless every dimension is known."""
        known = [dim for dim in self.shape if dim is not None]
        return math.prod(known) * self.width if len(known) == len(self.shape) else None

    @property
    def rows(self) -> int | None:
        """Length of the first dimension."""
        return self.shape[0] if self.shape else None

    @property
    def row_bytes(self) -> int | None:
        """Size of one row."""
        return Size(self.shape[1:], self.width).bytes


def size_of(value: Value | None) -> Size | None:
    """Return the size of the array that `value` is; None where the code does not say it."""
    match value:
        case Produced(call=call):
            return _made(call)
        case Tensor(origin=Call() as origin):
            return _made(origin)
        case Tensor(origin=None, parents=(base, key)):
            return _part(base, key)
        case Subscript(base=base, key=key):
            return _part(base, key)
        case Operation(operator=operator, operands=(left, right)) if operator in (
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "**",
        ):
            return _joined(left, right)
        case _:
            return None


def sizes_of(value: Value | None) -> list[Size]:
    """Return the known sizes among the arrays of a tuple, list or dict, and of one alternative of a branch."""
    match value:
        case Items(items=items):
            return [size for item in items for size in sizes_of(item)]
        case Choice(options=options):
            return max((sizes_of(option) for option in options), key=total_bytes)
        case _:
            from tflint_gpu.program.values import Mapping

            if isinstance(value, Mapping):
                return [size for item in value.items.values() for size in sizes_of(item)]
            size = size_of(value)
            return [size] if size else []


def total_bytes(sizes: list[Size]) -> int:
    """Return the bytes of all `sizes` that are known."""
    return sum(size.bytes or 0 for size in sizes)


def rows_of(value: Value | None) -> int | None:
    """Return how many rows the arrays of `value` have, None where the code does not say it."""
    return next((size.rows for size in sizes_of(value) if size.rows is not None), None)


def _made(call: Call) -> Size | None:
    name = call.callee
    last = name.rpartition(".")[2]
    if name in _SHAPE_FIRST:
        shape = _shape(call.argument("shape", 0) or call.argument("size", 0) or call.argument("dims", 0))
        position = 1 if name.startswith("numpy.") and last != "full" else None
        return _sized(shape, call, _SHAPE_FIRST[name], position)
    if name in _DIMENSIONS:
        return _sized(_shape(Items("tuple", call.args)), call, 8, None)
    if last in _SIZED and name.startswith("numpy.random."):
        return _sized(_shape(call.argument("size", _SIZED[last])), call, 8, None)
    if last == "astype" and call.receiver is not None and call.args:
        size, width = size_of(call.receiver), _width(call.args[0])
        return Size(size.shape, width) if size and width else None
    if last in ("copy", "numpy") and call.receiver is not None:
        return size_of(call.receiver)
    if name in ("tf.cast", "tf.constant", "tf.convert_to_tensor", "numpy.asarray", "numpy.array") and call.args:
        size = size_of(call.args[0])
        width = _width(call.argument("dtype", 1))
        return Size(size.shape, width or size.width) if size else None
    return None


def _sized(shape: tuple[int | None, ...] | None, call: Call, width: int, position: int | None) -> Size | None:
    dtype = call.argument("dtype", position)
    if shape is None:
        return None
    if dtype is None:
        return Size(shape, width)
    given = _width(dtype)
    return Size(shape, given) if given else None


def _shape(value: Value | None) -> tuple[int | None, ...] | None:
    """Return a shape given as a number or as a tuple of numbers."""
    if isinstance(value, Items):
        if not value.complete or not value.items:
            return None
        return tuple(
            item.value if isinstance(item, Const) and isinstance(item.value, int) else None for item in value.items
        )
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return (value.value,)
    if isinstance(value, Const) and isinstance(value.value, (tuple, list)):
        return tuple(dim if isinstance(dim, int) else None for dim in value.value)
    return None


def _width(value: Value | None) -> int | None:
    if isinstance(value, Const) and isinstance(value.value, str):
        return WIDTHS.get(value.value)
    if isinstance(value, External):
        return WIDTHS.get(value.name.rpartition(".")[2])
    return None


def _part(base: Value, key: Value) -> Size | None:
    """Return the size of ``base[key]`` for slices and numbers along the leading dimensions."""
    size = size_of(base)
    if size is None:
        return None
    keys = key.items if isinstance(key, Items) and key.kind == "tuple" else (key,)
    shape: list[int | None] = []
    rest = list(size.shape)
    for part in keys:
        if isinstance(part, Const) and part.value is None:
            shape.append(1)
            continue
        if not rest:
            return None
        dim = rest.pop(0)
        if isinstance(part, Operation) and part.operator == "slice":
            shape.append(_length(part, dim))
        elif not (isinstance(part, Const) and isinstance(part.value, int)):
            return None
    return Size((*shape, *rest), size.width)


def _length(piece: Operation, dim: int | None) -> int | None:
    bounds = [part.value if isinstance(part, Const) else "?" for part in piece.operands]
    if dim is None or any(bound is not None and not isinstance(bound, int) for bound in bounds):
        return None
    return len(range(*slice(*bounds).indices(dim)))


def _joined(left: Value, right: Value) -> Size | None:
    """Return the size of arithmetic between an array and a number, or between two arrays of one shape."""
    first, second = size_of(left), size_of(right)
    if first and second:
        return first if first.shape == second.shape and first.width >= second.width else None
    return first if isinstance(right, Const) else second if isinstance(left, Const) else None
