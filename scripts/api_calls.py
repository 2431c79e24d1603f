"""How to call TensorFlow's public functions once, so that the kernel table can see which ops they become.

`guesses` finds arguments for a function nobody described, from the names of its parameters; ``api_recipes``
describes the calls that guessing cannot reach.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

#: Values by parameter name, for parameters that are no data.
# fmt: off
BY_NAME: dict[str, Any] = {
    "shape": [16, 16], "dims": [16, 16], "axis": 0, "axes": [0], "dim": 0, "dtype": tf.float32, "seed": [1, 2],
    "num_segments": 16, "depth": 8, "k": 2, "n": 2, "size": [8, 8], "ksize": 2, "ksizes": [1, 3, 3, 1],
    "strides": 1, "rates": [1, 1, 1, 1], "padding": "SAME", "paddings": [[1, 1], [1, 1]], "rate": 0.5,
    "pattern": "a", "rewrite": "b", "maxval": 1.0, "minval": 0.0, "lower": 0.1, "upper": 0.5, "delta": 0.1,
    "max_delta": 0.1, "gamma": 2.0, "gain": 1.0, "saturation_factor": 1.5, "contrast_factor": 1.5, "quality": 50,
    "jpeg_quality": 50, "num_classes": 4, "multiples": [1, 2], "target_height": 8, "target_width": 8,
    "offset_height": 1, "offset_width": 1, "central_fraction": 0.5, "block_size": 2, "frame_length": 8,
    "frame_step": 4, "fft_length": [16], "max_output_size": 8, "max_outputs": 4, "num_buckets": 7, "perm": [1, 0],
    "delimiter": ",", "separator": ",", "sep": ",", "num_lower": 1, "num_upper": 1, "nbins": 10,
    "value_range": [0.0, 1.0], "num_or_size_splits": 2, "lam": 2.0, "alpha": 1.5, "beta": 1.5, "counts": 3.0,
    "probs": 0.5, "num_samples": 4, "clip_norm": 1.0, "clip_value_min": 0.0, "clip_value_max": 1.0,
    "depth_radius": 2, "crop_size": [8, 8], "filter_shape": 3, "output_type": tf.int32, "out_type": tf.float32,
    "input_min": 0.0, "input_max": 1.0, "min_range": 0.0, "max_range": 1.0, "T": tf.qint8, "max_val": 1.0,
    "min": 0.0, "max": 1.0, "width": 8, "height": 8, "ord": 2, "lower_seed": 1, "ngram_width": 2, "toseq": 1,
    "new_height": 8, "func": None, "fn": None, "name": None, "input_encoding": "UTF-8",
    "output_encoding": "UTF-8", "fill": "0", "pos": 0, "len": 2, "template": "{}", "bad_color": None, "reps": 2,
    "repeats": 2, "diagonals": [-1, 0, 1], "pooling_ratio": [1.0, 1.5, 1.5, 1.0], "window_shape": [2, 2],
    "pooling_type": "MAX", "block_shape": [2, 2], "crops": [[0, 0], [0, 0]], "method": "bilinear",
}
# fmt: on
#: Parameters that leave graph building, start things or only wrap other code: such functions are not called.
CALLS_BACK = frozenset(
    ("fn", "func", "f", "body", "cond", "true_fn", "false_fn", "callable", "initializer", "function")
)


@functools.cache
def samples() -> dict[str, Any]:
    """Return a value of every kind of tensor, large enough not to count as shape arithmetic."""
    rng = np.random.default_rng(0)
    square = rng.random((16, 16), dtype=np.float32)
    return {
        "matrix": tf.constant(square + 4 * np.eye(16, dtype=np.float32)),
        "images": tf.constant(rng.random((2, 16, 16, 3), dtype=np.float32)),
        "vector": tf.constant(rng.random(128, dtype=np.float32)),
        "cube": tf.constant(rng.random((4, 16, 8), dtype=np.float32)),
        "image": tf.constant(rng.random((16, 16, 3), dtype=np.float32)),
        "ints": tf.constant(np.arange(128) % 7, tf.int32),
        "int_matrix": tf.constant(np.arange(256).reshape(16, 16) % 7, tf.int32),
        "longs": tf.constant(np.arange(128) % 7, tf.int64),
        "complex": tf.constant(square, tf.complex64),
        "strings": tf.constant(["12"] * 128),
        "string": tf.constant("12"),
        "sparse": tf.sparse.from_dense(square * (square > 0.5)),
        "ragged": tf.RaggedTensor.from_row_lengths(rng.random(120, dtype=np.float32), list(range(16))),
        "bools": tf.constant(square > 0.5),
        "bytes": tf.constant(np.zeros((16, 16, 3), np.uint8)),
        "boxes": tf.constant(rng.random((16, 4), dtype=np.float32)),
    }


def guesses(function: Callable[..., Any], limit: int = 40) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield (positional arguments, keyword arguments) that may suit `function`: likelier ones first."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    needed = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not needed or any(p.name in CALLS_BACK for p in parameters):
        return
    data = [p for p in needed if p.name not in BY_NAME]
    kinds = samples()
    pools = [[value] * len(data) for value in kinds.values()]
    mixed = itertools.product(list(kinds.values())[:12], repeat=len(data)) if 1 < len(data) < 4 else ()
    lists = [[[value, value]] for value in kinds.values()] if len(data) == 1 else []
    for values in itertools.islice(itertools.chain(pools, lists, mixed), limit):
        given = iter(values)
        yield [BY_NAME[p.name] if p.name in BY_NAME else next(given) for p in needed], {}
