"""What old calls are called now, argument by argument, for the fixes of legacy-input-api."""

from __future__ import annotations

from dataclasses import dataclass

#: Arguments of the queue that Keras 3 has taken from `fit` and its kin.
WORKERS = ("workers", "use_multiprocessing", "max_queue_size")

_OF_FIT = (
    *("generator", "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data", "validation_steps"),
    *("validation_freq", "class_weight", "max_queue_size", "workers", "use_multiprocessing", "shuffle"),
    "initial_epoch",
)
_OF_PREDICT = ("generator", "steps", "callbacks", "max_queue_size", "workers", "use_multiprocessing", "verbose")

#: The generators' own methods: the method that takes generators now, and the old one's arguments in order.
METHODS = {
    "fit_generator": ("fit", _OF_FIT),
    "evaluate_generator": ("evaluate", _OF_PREDICT),
    "predict_generator": ("predict", _OF_PREDICT),
}


@dataclass(frozen=True, slots=True)
class Transformation:
    """A function that was given to ``apply``.

    `methods` do the same; ``$name`` stands for the argument of that name, see the edit apply-as-methods.
    `positions` are all its arguments in order, `gone` those that nothing takes any more.
    """

    methods: str
    positions: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    safety: str = "safe"


TRANSFORMATIONS = {
    "tf.data.experimental.map_and_batch": Transformation(
        "map($map_func, num_parallel_calls=$num_parallel_calls|{tensorflow.data.AUTOTUNE})"
        ".batch($batch_size, drop_remainder=$drop_remainder)",
        ("map_func", "batch_size", "num_parallel_batches", "drop_remainder", "num_parallel_calls"),
        ("num_parallel_batches",),
    ),
    "tf.data.experimental.shuffle_and_repeat": Transformation(
        "shuffle($buffer_size, seed=$seed).repeat($count)", ("buffer_size", "count", "seed")
    ),
    "tf.data.experimental.unbatch": Transformation("unbatch()"),
    "tf.data.experimental.parallel_interleave": Transformation(
        "interleave($map_func, cycle_length=$cycle_length, block_length=$block_length, "
        "num_parallel_calls={tensorflow.data.AUTOTUNE})",
        (
            "map_func",
            "cycle_length",
            "block_length",
            "sloppy",
            "buffer_output_elements",
            "prefetch_input_elements",
        ),
        ("sloppy", "buffer_output_elements", "prefetch_input_elements"),
        "unsafe",
    ),
}
