"""What is known of tf.data's stages: which run ahead, which the runtime makes parallel, which set the batch.

The facts were measured by running pipelines and reading the iterator chains that TensorFlow 2.10.1, 2.15.1 and
2.21.0 rewrote them to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.map_functions import stateful_cause
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import (
    Choice,
    Const,
    Dataset,
    External,
    Items,
    Operation,
    Produced,
    Stage,
    Subscript,
    Tensor,
    Value,
)
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Pipeline, Program

#: Sources that read records from files, one file after the other unless told otherwise.
RECORD_READERS = frozenset({"TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset"})

#: Loaders of Keras that decode, shuffle, batch and (from TensorFlow 2.8) prefetch, with their default batch.
DIRECTORY_LOADERS = {
    "image_dataset_from_directory": 32,
    "text_dataset_from_directory": 32,
    "audio_dataset_from_directory": 32,
}

#: Sources that batch by themselves, with their default batch (None: the caller has to say).
BATCHING_SOURCES: dict[str, int | None] = {
    **DIRECTORY_LOADERS,
    "timeseries_dataset_from_array": 128,
    "make_csv_dataset": None,
    "make_batched_features_dataset": None,
}

#: Stages that join elements to a batch.
BATCHES = frozenset({"batch", "padded_batch", "ragged_batch", "rebatch"})

#: Stages that hand on what comes, without work of their own.
PASSING = frozenset({"take", "repeat", "skip", "enumerate", "assert_cardinality"})

#: Stages that fill a buffer of their own in the background.
BUFFERED = frozenset({"prefetch", "copy_to_device", "map_and_batch", "ignore_errors", "snapshot"})

#: Stages that join whole datasets: what is nested in them runs as it would alone.
JOINS = frozenset({"zip", "concatenate", "sample_from_datasets", "choose_from_datasets"})

_SYNCHRONOUS = frozenset(
    {
        *BATCHES,
        *RECORD_READERS,
        *(
            "from_tensor_slices",
            "from_tensors",
            "from_generator",
            "range",
            "list_files",
            "map",
            "filter",
            "interleave",
        ),
        *("flat_map", "shuffle", "cache", "unbatch", "window", "timeseries_dataset_from_array", "shard", "scan"),
        *("bucket_by_sequence_length", "group_by_window", "take_while", "unique", "CsvDataset"),
    }
)

#: Calls that list the files of a folder.
_FILE_LISTS = frozenset(
    {
        *(
            "glob.glob",
            "glob.iglob",
            "os.listdir",
            "os.scandir",
            "os.walk",
            "tf.io.gfile.glob",
            "tf.io.gfile.listdir",
        ),
        *(
            "tf.io.matching_files",
            "tf.io.gfile.walk",
            "tf.compat.v1.gfile.Glob",
            "tf.compat.v1.gfile.ListDirectory",
        ),
        *("pathlib.Path().glob", "pathlib.Path().rglob", "pathlib.Path().iterdir"),
    }
)


#: Calls that hand on the file names they are given.
_NAMES_OF_FILES = frozenset(
    {
        *(
            "os.path.join",
            "builtins.str",
            "builtins.map",
            "builtins.filter",
            "numpy.array",
            "numpy.sort",
            "pathlib.Path",
        ),
        *("natsort.natsorted", "random.sample", "builtins.sorted", "builtins.list"),
    }
)


def asks_parallel(stage: Stage) -> bool | None:
    """Say whether `stage` asks for parallel calls; None where its argument cannot be read."""
    return parallel_argument(stage.call.argument("num_parallel_calls"))


def parallel_argument(value: Value | None) -> bool | None:
    """Say whether the value of a ``num_parallel_…`` argument is more than one; None where it cannot be read."""
    if value is None:
        return False
    answers = {_more_than_one(option) for option in options_of(value)}
    return answers.pop() if len(answers) == 1 else None


def _more_than_one(value: Value) -> bool | None:
    if isinstance(value, External):
        return True if value.name == "tf.data.AUTOTUNE" else None
    if not isinstance(value, Const):
        return None
    number = value.value
    if isinstance(number, (int, float)):
        return bool(number == -1 or number > 1)
    return False if number is None else None


def is_soft(value: Value | None) -> bool:
    """Say whether `value` is a default that a user may override at run time."""
    return isinstance(value, Const) and value.soft


def option(dataset: Dataset, *names: str) -> bool | None:
    """Return the literal truth of the first option set under one of `names`, None where none is."""
    for name, value in dataset.options.items():
        if any(name == wanted or name.endswith(f".{wanted}") for wanted in names):
            found = literal(value)
            if isinstance(found, bool):
                return found
    return None


def rewriting_off(dataset: Dataset) -> bool:
    """Say whether the dataset's options forbid tf.data to rewrite it or to tune it, by the old or the new name."""
    tuned = option(dataset, "autotune.enabled", "experimental_optimization.autotune")
    return tuned is False or option(dataset, "apply_default_optimizations") is False


def injects_prefetch(dataset: Dataset, target: Target) -> bool:
    """Say whether the runtime will end `dataset` in a prefetch of its own."""
    wanted = option(dataset, "inject_prefetch") is not False
    return target.injects_prefetch and wanted and not rewriting_off(dataset)


def parallelises(dataset: Dataset, target: Target) -> bool:
    """Say whether the runtime makes stateless maps of `dataset` parallel."""
    wanted = option(dataset, "map_parallelization") is not False
    return target.parallelises_maps and wanted and not rewriting_off(dataset)


def runs_ahead(dataset: Dataset, target: Target) -> bool | None:
    """Say whether the end of `dataset` makes batches while the step runs; None where a branch decides."""
    doubt = False
    for stage in reversed(dataset.stages):
        if stage.op in PASSING:
            continue
        ahead = _stage_runs_ahead(stage, dataset, target)
        if not stage.conditional:
            return None if doubt and ahead else ahead
        if ahead is not False:
            return None
        doubt = True
    return None


def _stage_runs_ahead(stage: Stage, dataset: Dataset, target: Target) -> bool | None:
    if stage.op in BUFFERED or stage.op == "tfds":
        return True
    if stage.op in DIRECTORY_LOADERS:
        return target.tensorflow >= (2, 8)
    if stage.op == "make_csv_dataset":
        return bool(stage.call.constant("prefetch_buffer_size") != 0)
    if stage.op in JOINS:
        return True if stage.nested and all(runs_ahead(part, target) for part in stage.nested) else None
    if stage.op in ("map", "interleave"):
        asked = asks_parallel(stage)
        if asked is False and stage.op == "map" and parallelises(dataset, target):
            return stateful_cause(stage) is None
        return asked
    if stage.op in BATCHES and stage.call.argument("num_parallel_calls") is not None:
        return None
    return False if stage.op in _SYNCHRONOUS else None


def last_working(dataset: Dataset) -> Stage:
    """Return the last stage that does work of its own: ``take`` and kin only hand on."""
    return next((stage for stage in reversed(dataset.stages) if stage.op not in PASSING), dataset.last)


def fused_batch(dataset: Dataset) -> bool:
    """Say whether `dataset` ends in a map and a batch, which the runtime fuses into one stage that runs ahead.

    Measured on TensorFlow 2.21 without injected prefetch: a 42 ms batch is ready at once after a 50 ms step,
    whether the map asks for parallel calls or not. It stays one batch ahead where a prefetch may stay several.
    """
    tail = [stage for stage in dataset.stages if stage.op not in PASSING][-2:]
    fused = [stage.op for stage in tail] == ["map", "batch"] and not any(stage.conditional for stage in tail)
    return fused and not rewriting_off(dataset)


def batch_in_force(dataset: Dataset) -> tuple[Stage, Value | int] | None:
    """Return the stage that sets the batch that the consumer sees, and its size; None where that is not known.

    The size is an int where a loader's default is in force.
    """
    for stage in reversed(dataset.stages):
        if stage.op in BATCHES or stage.op in BATCHING_SOURCES:
            size = stage.call.argument("batch_size")
            default = BATCHING_SOURCES.get(stage.op)
            if stage.conditional or (size is None and default is None):
                return None
            return stage, default if size is None and default is not None else size or 0
        if stage.op in (
            "unbatch",
            "window",
            "group_by_window",
            "bucket_by_sequence_length",
            "map_and_batch",
            "flat_map",
        ):
            return None
    return None


def all_stages(dataset: Dataset, outer: Stage | None = None) -> Iterator[tuple[Stage, Stage | None]]:
    """Yield every stage of `dataset` with the interleave or flat_map that it is nested in, None at the top."""
    for stage in dataset.stages:
        yield stage, outer
        for nested in stage.nested:
            yield from all_stages(nested, outer if stage.op in JOINS else stage)


def runs_once(dataset: Dataset, stage: Stage) -> bool:
    """Say whether a cache surely follows `stage`, so that later epochs do not run it."""
    for index, candidate in enumerate(dataset.stages):
        if candidate is stage or any(inner is stage for part in candidate.nested for inner, _ in all_stages(part)):
            later = dataset.stages[index + 1 :]
            kept = any(other.op in ("cache", "snapshot", "save") and not other.conditional for other in later)
            return kept or any(runs_once(part, stage) for part in candidate.nested)
    return False


def several_files(value: Value | None) -> bool:
    """Say whether `value` surely stands for more than one file: a list of names, a glob, a directory listing."""
    match value:
        case Const(value=str() as text):
            return any(sign in text for sign in "*?[")
        case Items(kind="list" | "tuple", items=items, complete=complete):
            return len(items) > 1 or not complete
        case Dataset(source=source):
            slices = source.op == "from_tensor_slices" and several_files(source.call.argument("tensors", 0))
            return source.op == "list_files" or slices
        case Choice(options=options):
            return all(several_files(choice) for choice in options)
        case Subscript(base=base, key=Operation(operator="slice")):
            return several_files(base)
        case Operation(operator="+" | "format" | "path" | "/", operands=parts):
            return any(several_files(part) for part in parts)
        case Produced(callee=callee, call=call) if callee in _FILE_LISTS or callee in _NAMES_OF_FILES:
            return callee in _FILE_LISTS or any(several_files(argument) for argument in call.args)
        case Tensor(origin=Call(callee=callee, args=args)):
            return callee in _FILE_LISTS or (callee == "tf.constant" and any(map(several_files, args)))
        case _:
            return False


def training_pipelines(program: Program) -> Iterator[Pipeline]:
    """Yield the pipelines that feed training, each dataset once."""
    seen: set[int] = set()
    for pipeline in program.pipelines:
        if pipeline.role == "train" and id(pipeline.dataset) not in seen:
            seen.add(id(pipeline.dataset))
            yield pipeline
