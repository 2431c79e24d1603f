"""What is known of a batch's length: which expressions surely hold one sample with a batch axis of one."""

from __future__ import annotations

from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Choice, Const, External, Items, Operation, Produced, Subscript, Tensor, Value

_NEW_AXIS = ("numpy.newaxis", "tf.newaxis")
_EXPANDS = ("numpy.expand_dims", "tf.expand_dims", "keras.backend.expand_dims", "keras.ops.expand_dims")
_WRAPS = ("numpy.array", "numpy.asarray", "tf.constant", "tf.convert_to_tensor", "numpy.stack", "tf.stack")
_RESHAPES = ("numpy.reshape", "tf.reshape", "keras.ops.reshape")
_SHAPED = ("numpy.zeros", "numpy.ones", "numpy.empty", "tf.zeros", "tf.ones")
_DRAWN = ("numpy.random.rand", "numpy.random.randn")
_SIZED = (
    "numpy.random.normal",
    "numpy.random.uniform",
    "numpy.random.random",
    "tf.random.normal",
    "tf.random.uniform",
)
#: Methods and functions that keep the rows of what they are given.
_KEEPING = (".astype", ".copy", ".numpy", ".to_numpy", ".toarray")
_PASSING = (
    "preprocess_input",
    "tf.cast",
    "tf.image.resize",
    "tf.convert_to_tensor",
    "tf.identity",
    "numpy.asarray",
)


def one_row(value: Value | None) -> bool:
    """Say whether `value` surely has a batch axis of length one, as ``x[None]`` and ``x[i : i + 1]`` have."""
    match value:
        case Choice(options=options):
            return all(one_row(option) for option in options)
        case Subscript(base=base, key=key):
            return _one_by_key(key) or (_keeps_rows(key) and one_row(base))
        case Operation(operator=operator, operands=parts) if operator in ("+", "-", "*", "/", "//"):
            return any(one_row(part) for part in parts)
        case Produced(call=call):
            return _made_with_one(call)
        case Tensor(origin=Call() as origin):
            return _made_with_one(origin)
        case Tensor(origin=None, parents=(base, key)) if isinstance(key, (Items, Const, External, Operation)):
            return _one_by_key(key) or (not isinstance(key, Items) and one_row(base))
        case Items(kind="list" | "tuple", items=items) if items:
            # Several inputs of a model, each with its own batch axis.
            return all(one_row(item) for item in items)
        case _:
            return False


def _one_by_key(key: Value) -> bool:
    first = key.items[0] if isinstance(key, Items) and key.kind == "tuple" and key.items else key
    if isinstance(first, Const):
        return first.value is None
    if isinstance(first, External):
        return first.name in _NEW_AXIS
    if isinstance(first, Items):
        return first.kind == "list" and first.complete and len(first.items) == 1
    return isinstance(first, Operation) and first.operator == "slice" and _one_long(first)


def _keeps_rows(key: Value) -> bool:
    first = key.items[0] if isinstance(key, Items) and key.items else key
    return isinstance(first, Operation) and first.operator == "slice" and all(_is_none(p) for p in first.operands)


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _one_long(piece: Operation) -> bool:
    start, stop = piece.operands[0], piece.operands[1]
    if isinstance(start, Const) and isinstance(stop, Const):
        return (start.value or 0) == 0 and stop.value == 1
    if not isinstance(stop, Operation) or stop.operator != "+":
        return False
    left, right = stop.operands
    return isinstance(right, Const) and right.value == 1 and same(left, start)


def same(first: Value, second: Value) -> bool:
    """Say whether two values are surely the same: one object, or one expression over the same parts."""
    if first is second:
        return True
    if isinstance(first, Const) and isinstance(second, Const):
        return bool(first.value == second.value)
    if isinstance(first, Operation) and isinstance(second, Operation):
        return (
            first.operator == second.operator
            and len(first.operands) == len(second.operands)
            and all(map(same, first.operands, second.operands))
        )
    return False


def _made_with_one(call: Call) -> bool:
    name = call.callee
    first = call.args[0] if call.args else None
    if name in _EXPANDS:
        axis = call.argument("axis", 1)
        return isinstance(axis, Const) and axis.value == 0
    if name in _WRAPS and isinstance(first, Items):
        return (
            first.kind in ("list", "tuple")
            and first.complete
            and len(first.items) == 1
            and not _scalar(first.items[0])
        )
    if name in _RESHAPES:
        return _leads_with_one(call.argument("shape", 1) or call.argument("newshape", 1))
    if name.endswith(".reshape"):
        return _leads_with_one(first)
    if name in _SHAPED:
        return isinstance(first, Items) and _leads_with_one(first)
    if name in _DRAWN:
        return _leads_with_one(first) and len(call.args) > 1
    if name in _SIZED:
        size = call.argument("size", 2) or call.argument("shape", 0)
        return isinstance(size, Items) and _leads_with_one(size)
    if name.endswith(_KEEPING):
        return one_row(call.receiver)
    if name.endswith(_PASSING):
        return one_row(first)
    return False


def _leads_with_one(shape: Value | None) -> bool:
    if isinstance(shape, Items):
        return len(shape.items) > 1 and _leads_with_one(shape.items[0])
    return isinstance(shape, Const) and shape.value == 1


def _scalar(value: Value) -> bool:
    return isinstance(value, Const)
