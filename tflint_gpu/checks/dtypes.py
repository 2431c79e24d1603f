"""What is known of tensors' types: the dtype of a tensor, as far as the code tells it for certain."""

from __future__ import annotations

from collections.abc import Iterable

from tflint_gpu.program.calls import Call
from tflint_gpu.program.folding import is_mask
from tflint_gpu.program.questions import MAX_ORIGINS, walk
from tflint_gpu.program.values import Const, External, Items, Tensor, Value

#: Old spellings of dtypes.
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "int": "int64"}

_NAMES = frozenset(
    """
    float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128
    """.split()
)

#: Functions that take the dtype of their result as an argument: position, and the default (None: not known).
_SAYS: dict[str, tuple[int, str | None]] = {
    "tf.cast": (1, None),
    "keras.ops.cast": (1, None),
    "keras.backend.cast": (1, None),
    "tf.convert_to_tensor": (1, None),
    "tf.constant": (1, None),
    "tf.zeros": (1, "float32"),
    "tf.ones": (1, "float32"),
    "tf.eye": (3, "float32"),
    "tf.one_hot": (5, "float32"),
    "tf.random.uniform": (3, "float32"),
    "tf.random.normal": (3, "float32"),
    "tf.argmax": (2, "int64"),
    "tf.argmin": (2, "int64"),
    "tf.math.argmax": (2, "int64"),
    "tf.math.argmin": (2, "int64"),
    "tf.bitcast": (1, None),
    "tf.saturate_cast": (1, None),
}

#: Functions whose result has the dtype of their first argument.
_KEEPS = frozenset(
    f"tf.{name}"
    for name in (
        *("reshape", "transpose", "squeeze", "expand_dims", "tile", "repeat", "gather", "gather_nd", "concat"),
        *("stack", "pad", "abs", "maximum", "minimum", "add", "subtract", "multiply", "square", "clip_by_value"),
        *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "cumsum", "sort", "reverse", "roll", "slice"),
        *("boolean_mask", "broadcast_to", "math.add", "math.subtract", "math.multiply", "math.maximum"),
        *("math.minimum", "math.abs", "math.reduce_sum", "math.reduce_max", "math.reduce_min", "math.cumsum"),
        *("math.floormod", "math.mod", "zeros_like", "ones_like", "ensure_shape", "matmul", "linalg.matmul"),
        *("image.flip_left_right", "image.crop_to_bounding_box", "image.central_crop", "identity"),
    )
)

#: Functions whose result is a shape, a count or an index vector: whole numbers that are small wherever they are.
_COUNTS = frozenset(
    [
        *(
            f"{owner}{name}"
            for owner in ("tf.", "keras.ops.", "keras.backend.")
            for name in ("shape", "size", "rank", "range", "arange", "int_shape", "ndim", "shape_n")
        ),
        *(f"tf.Tensor.{name}" for name in ("get_shape", "as_list", "shape", "rank", "numel")),
    ]
)


def dtype_of(value: Value | None) -> str | None:
    """Return the dtype of the tensor `value` (``int32``), None where the code does not say it for certain.

    Nor is it said of what more than `MAX_ORIGINS` values went into: sums of sums may go back for ever.
    """
    return _dtype(value, {})


def _dtype(value: Value | None, known: dict[int, str | None]) -> str | None:
    """Return the dtype of `value`; `known` holds those of what was looked at, for it may come in many times."""
    if id(value) not in known:
        if len(known) >= MAX_ORIGINS:
            return None
        known[id(value)] = None
        known[id(value)] = _worked_out(value, known)
    return known[id(value)]


def _first(values: Iterable[Value], known: dict[int, str | None]) -> str | None:
    for value in values:
        found = _dtype(value, known)
        if found is not None:
            return found
    return None


def _worked_out(value: Value | None, known: dict[int, str | None]) -> str | None:
    match value:
        case Tensor() if is_mask(value):
            return "bool"
        case Tensor(origin=Call() as origin):
            return _of_call(origin, known)
        case Tensor(operator="+" | "-" | "*" | "//" | "%" | "**" | "&" | "|" | "^" | "~" | "@", parents=parts):
            # Both sides of an operator have one dtype: Python numbers adapt to the tensor's.
            return _first(parts, known)
        case Tensor(operator="/", parents=parts):
            found = _first(parts, known)
            return found if found and found.startswith(("float", "bfloat")) else None
        case Tensor(operator="[]", parents=(base, _)):
            return _dtype(base, known)
        case Items(items=items):
            return _first(items, known)
        case _:
            return None


def _of_call(call: Call, known: dict[int, str | None]) -> str | None:
    if call.callee == "keras.Input":
        dtype = call.argument("dtype")
        return "float32" if dtype is None and not call.open else name_of(dtype)
    if call.callee in _SAYS:
        position, default = _SAYS[call.callee]
        given = call.argument("output_type" if "arg" in call.callee else "dtype", position)
        if given is not None:
            return name_of(given)
        return _dtype(call.args[0], known) if default is None and call.args else default
    if call.callee in _KEEPS and call.args:
        return _dtype(call.args[0], known)
    if call.callee == "tf.where" and len(call.args) == 3:
        return _dtype(call.args[1], known) or _dtype(call.args[2], known)
    return None


def name_of(dtype: Value | None) -> str | None:
    """Return the plain name of a dtype that is written as a string or as ``tf.int32``, ``np.float16``."""
    if isinstance(dtype, Const) and isinstance(dtype.value, str) and not dtype.soft:
        name = dtype.value
    elif isinstance(dtype, External):
        name = dtype.name.rpartition(".")[2]
    else:
        return None
    name = _ALIASES.get(name, name)
    return name if name in _NAMES else None


def counts(value: Value | None) -> bool:
    """Say whether `value` comes from shapes, sizes or ranges: a few whole numbers, cheap on any device."""
    return any(
        isinstance(part, Tensor) and part.origin is not None and part.origin.callee in _COUNTS
        for part in walk(value)
    )
