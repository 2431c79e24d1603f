"""TFG107: training data that is read file by file from far away, or by Python from one file at random."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input
from tflint_gpu.checks.pipelines import (
    DIRECTORY_LOADERS,
    RECORD_READERS,
    all_stages,
    asks_parallel,
    parallel_argument,
)
from tflint_gpu.findings import Finding, Location, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import (
    Choice,
    Class,
    Const,
    Dataset,
    External,
    Items,
    Operation,
    Produced,
    Stage,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Where a file costs a round trip over a network, by the start of its path.
REMOTE = {
    "/content/drive/": "Google Drive",
    "/content/gdrive/": "Google Drive",
    "/content/MyDrive/": "Google Drive",
    "/gdrive/": "Google Drive",
    "gs://": "a bucket",
    "s3://": "a bucket",
    "abfs://": "a bucket",
    "hdfs://": "HDFS",
    "viewfs://": "HDFS",
    "/nfs/": "NFS",
}

_READERS = ("pandas.read_csv", "pandas.read_pickle", "pandas.read_parquet", "pandas.read_hdf", "pandas.read_excel")
_FLOWS = (".flow_from_directory", ".flow_from_dataframe")
_KEPT = ("cache", "snapshot")
_LISTS = (
    "glob.glob",
    "builtins.sorted",
    "builtins.list",
    "tf.io.gfile.glob",
    "tf.io.matching_files",
    "os.listdir",
)


class SlowSourceManyFiles(Check):
    """Reports many small files on remote or mounted storage, and HDF5 or tables read sample by sample."""

    needles = (
        *(prefix.strip("/") for prefix in REMOTE),
        "h5py",
        "read_csv",
        "read_pickle",
        "read_parquet",
        "read_hdf",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield remote sources of training data and readers that open a file for every sample."""
        for pipeline in program.pipelines:
            if pipeline.role in ("train", "validation"):
                severity = self.severity if pipeline.role == "train" else Severity.INFO
                yield from self._sources(pipeline.dataset, severity)
        for call in program.calls:
            if call.callee.endswith(_FLOWS) and (where := _remote(call)):
                yield self._far(call, where, self.severity)
        yield from self._samples(program)

    def _sources(self, dataset: Dataset, severity: Severity) -> Iterator[Finding]:
        if any(stage.op in _KEPT and not stage.conditional for stage in dataset.stages):
            return
        shards = any(_reads_shards(stage) for stage in dataset.stages)
        for stage, outer in all_stages(dataset):
            if shards and stage is dataset.source:
                continue  # the names of shards, which are read several at a time
            if _is_source(stage) and not _streams(stage, outer) and (where := _remote(stage.call)):
                yield self._far(stage.call, where, severity)

    def _far(self, call: Call, where: str, severity: Severity) -> Finding:
        return self.at(
            call,
            f"Every file of this data is fetched from {where} in every epoch, and the GPU waits for it. "
            "Copy it to the local disk first, or pack it into large shards.",
            severity=severity,
        )

    def _samples(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("h5py.File"):
            place = _place_of_reads(call)
            if place is not None:
                yield self.at(
                    place,
                    "HDF5 is read sample by sample from Python, under one lock, while the GPU waits. "
                    "Load it once, or convert it to TFRecord shards.",
                    qualname=call.qualname,
                )
        for call in program.calls_to(*_READERS):
            inside = call.context.region == "loader" and (call.context.loops or _is_loader(_owner(call)))
            if inside and not call.context.guards:
                name = call.callee.rpartition(".")[2]
                yield self.at(
                    call,
                    f"{name} parses a file for every sample or shard in Python, while the GPU waits. "
                    "Convert the data once, to arrays or TFRecord shards.",
                    # A generator is python-generator-input's finding already; this says what is slow in it.
                    severity=self.severity if _is_loader(_owner(call)) else Severity.INFO,
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the wait for input, all of which a slow source can cause."""
        return judge_input(evidence, 1.0)


def _is_source(stage: Stage) -> bool:
    known = stage.op in DIRECTORY_LOADERS or stage.op in RECORD_READERS
    return known or stage.op in ("list_files", "from_tensor_slices", "make_csv_dataset")


def _streams(stage: Stage, outer: Stage | None) -> bool:
    """Say whether large shards are read several at a time, as data in a bucket should be."""
    if stage.op not in RECORD_READERS:
        return False
    if outer is not None:
        return asks_parallel(outer) is not False
    return parallel_argument(stage.call.argument("num_parallel_reads")) is not False


def _reads_shards(stage: Stage) -> bool:
    """Say whether a stage opens several files of records at once: ``interleave`` with parallel calls."""
    if stage.op != "interleave" or asks_parallel(stage) is False:
        return False
    named = any(
        isinstance(option, External) and option.name.rpartition(".")[2] in RECORD_READERS
        for option in options_of(stage.function)
    )
    return named or any(nested.source.op in RECORD_READERS for nested in stage.nested)


def _remote(call: Call) -> str | None:
    """Return in words where the first remote path given to `call` leads, None where none is."""
    for start in (start for argument in (*call.args, *call.kwargs.values()) for start in _starts(argument)):
        for prefix, where in REMOTE.items():
            if start.startswith(prefix):
                return where
    return None


def _starts(value: Value) -> Iterator[str]:
    """Yield the known beginnings of the paths that `value` stands for: literals, joins, lists, globs."""
    match value:
        case Const(value=str() as text):
            yield text
        case Operation(operands=(first, *_)):
            yield from _starts(first)
        case Items(items=parts) | Choice(options=parts):
            for part in parts:
                yield from _starts(part)
        case Dataset():
            yield from (start for given in value.source.call.args for start in _starts(given))
        case Produced(call=call) if call.callee in _LISTS:
            for given in call.args:
                yield from _starts(given)
        case Produced(call=Call(callee=callee, receiver=base)) if base and callee.endswith((".glob", ".rglob")):
            yield from _starts(base)


def _place_of_reads(call: Call) -> Location | None:
    """Return where a loader reads the file that `call` opens; None where it keeps no hold of it between batches.

    A file opened for a batch is read there. One that the loader opens once and keeps is read by a subscript of it
    in another method; what is taken out whole while the loader is made is in memory.
    """
    if "loader" in call.context.regions:
        return call.location
    owner = _owner(call)
    if owner is None or not _is_loader(owner):
        return None
    kept: set[str] = set()
    opening = None
    for method in (part for part in owner.node.body if isinstance(part, ast.FunctionDef)):
        if any(node is call.node for node in ast.walk(method)):
            opening, kept = method, _kept(method, call.node)
    if opening is None:
        return call.location
    held = {name for name in kept if name.startswith("self.")}
    for method in owner.node.body:
        if method is opening or not isinstance(method, ast.FunctionDef):
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Subscript) and _is_kept(node.value, held) and not _is_name(node.slice):
                return owner.module.location(node)
    return call.location if held else None


def _kept(method: ast.FunctionDef, opened: ast.AST | None) -> set[str]:
    """Return what `method` calls the opened file and the data sets in it."""
    kept: set[str] = set()
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and (node.value is opened or _is_kept(node.value, kept)):
            kept |= {ast.unparse(target) for target in node.targets}
    return kept


def _is_kept(node: ast.AST, kept: set[str]) -> bool:
    """Say whether `node` is the file or a data set of it by name."""
    while isinstance(node, ast.Subscript) and _is_name(node.slice):
        node = node.value
    return ast.unparse(node) in kept


def _is_name(key: ast.AST) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _owner(call: Call) -> Class | None:
    return next((frame.function.owner for frame in call.context.activations if frame.function.owner), None)


def _is_loader(cls: Class | None) -> bool:
    return cls is not None and cls.is_a("keras.utils.PyDataset")
