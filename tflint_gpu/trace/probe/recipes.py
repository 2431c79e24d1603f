"""How a dataset was made, and how to make it again with one thing changed.

Every method that makes one dataset of another leaves its name and arguments with the result; what-if runs make the
chain again from its first dataset. A link that nobody recorded is a first dataset, used as it is.
"""

import inspect

from .hooks import patch

#: The methods that are recorded: those that make one dataset of one other.
METHODS = (
    "batch",
    "bucket_by_sequence_length",
    "cache",
    "enumerate",
    "filter",
    "flat_map",
    "group_by_window",
    "ignore_errors",
    "interleave",
    "map",
    "padded_batch",
    "prefetch",
    "ragged_batch",
    "rebatch",
    "repeat",
    "scan",
    "shard",
    "shuffle",
    "skip",
    "take",
    "take_while",
    "unbatch",
    "unique",
    "window",
    "with_options",
)

#: Changes of the input that this module knows.
CHANGES = ("prefetch", "parallel-map", "parallel-read", "cache", "determinism-off")

#: Methods after which elements are worth keeping, and those that a cache of a few elements makes pointless.
WORK = ("map", "flat_map", "interleave", "filter", "unbatch")
BOUNDS = ("cache", "repeat", "skip", "take")

#: Batches whose elements a cache keeps in its experiment: their first pass is over before a block is timed.
KEPT_BATCHES = 4


class Step:
    """One recorded call: the method's name and its arguments by name."""

    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments

    def changed(self, name=None, **arguments):
        """Return this step with other arguments, or of another method."""
        return Step(name or self.name, {**self.arguments, **arguments})

    def serial(self):
        """Say whether the step works on one element at a time, because nothing or one was asked for."""
        return self.arguments.get("num_parallel_calls") in (None, 1)


class Recipes:
    """Records the methods of the dataset class and makes recorded datasets again."""

    def __init__(self, run):
        self.run = run

    def install(self, tf):
        """Patch the dataset class of `tf`."""
        from tensorflow.python.data.ops import dataset_ops

        for name in METHODS:
            patch(dataset_ops.DatasetV2, name, self._recorded)

    def _recorded(self, original):
        parameters = list(inspect.signature(original).parameters)[1:]

        def watched(dataset, *args, **kwargs):
            made = original(dataset, *args, **kwargs)
            if self.run.keras_depth() == 0 and made is not dataset:
                # A method that is made of others is told as itself: the outermost record stays.
                made._tflint_gpu_step = (
                    dataset,
                    Step(original.__name__, {**dict(zip(parameters, args)), **kwargs}),
                )
            return made

        return watched

    def again(self, change, dataset, rows):
        """Return `dataset` made with `change`, None where that changes nothing; `rows` is its batch size."""
        first, steps = recipe_of(dataset)
        autotune = self.run.tensorflow.data.AUTOTUNE
        if change == "prefetch":
            ends = steps[-1].name if steps else type(dataset).__name__
            return None if "prefetch" in ends.lower() else dataset.prefetch(autotune)
        if change == "cache":
            return self._cached(first, steps, rows)
        if change == "determinism-off":
            return self._unordered(first, steps)
        names = ("map",) if change == "parallel-map" else ("interleave", "flat_map")
        changed = [parallel(step, autotune) if step.name in names and step.serial() else step for step in steps]
        return make(first, changed) if changed != steps else None

    def _cached(self, first, steps, rows):
        """Keep a few elements behind the last step that does the same work in every epoch."""
        if any(step.name == "cache" for step in steps):
            return None
        made, kept = first, 0
        for at, step in enumerate(steps):
            made = make(made, [step])
            if step.name == "map" and is_random(made):
                break
            if step.name in WORK:
                kept = at + 1
        if not kept:
            return None
        batched = any("batch" in step.name for step in steps[:kept] if step.name != "unbatch")
        count = KEPT_BATCHES if batched or not rows else KEPT_BATCHES * rows
        few = make(first, [step for step in steps[:kept] if step.name != "repeat"]).take(count).cache().repeat()
        return make(few, [step for step in steps[kept:] if step.name not in BOUNDS])

    def _unordered(self, first, steps):
        """Let parallel steps hand on what is ready first."""
        if not any(step.name in ("map", "interleave") for step in steps):
            return None
        free = [step.changed(deterministic=None) if "deterministic" in step.arguments else step for step in steps]
        options = self.run.tensorflow.data.Options()
        name = "deterministic" if hasattr(options, "deterministic") else "experimental_deterministic"
        setattr(options, name, False)
        return make(first, free).with_options(options)


def recipe_of(dataset):
    """Return the first dataset behind `dataset`, and the steps that lead from there."""
    steps = []
    while getattr(dataset, "_tflint_gpu_step", None) is not None:
        dataset, step = dataset._tflint_gpu_step
        steps.append(step)
    return dataset, steps[::-1]


def make(dataset, steps):
    """Return what `steps` make of `dataset`."""
    for step in steps:
        dataset = getattr(dataset, step.name)(**step.arguments)
    return dataset


def parallel(step, autotune):
    """Return a serial step with parallel calls; a ``flat_map`` has none, but is an interleave of one."""
    if step.name == "flat_map":
        named = {"name": step.arguments["name"]} if step.arguments.get("name") else {}
        return Step(
            "interleave", {"map_func": step.arguments["map_func"], "num_parallel_calls": autotune, **named}
        )
    return step.changed(num_parallel_calls=autotune)


def is_random(dataset):
    """Say whether a map draws random numbers in its graph; what its Python code draws cannot be seen."""
    try:
        graph = dataset._map_func.function.graph.as_graph_def()
    except AttributeError:
        return False
    nodes = list(graph.node) + [node for function in graph.library.function for node in function.node_def]
    return any("Random" in node.op or node.op.startswith("Rng") for node in nodes)
