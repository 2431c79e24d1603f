"""TFG106: files read one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input, judge_repair, part_of, stages_of
from tflint_gpu.checks.map_functions import is_random, reads_files, stateful_cause
from tflint_gpu.checks.pipelines import (
    RECORD_READERS,
    all_stages,
    asks_parallel,
    is_soft,
    parallel_argument,
    parallelises,
    runs_once,
    several_files,
)
from tflint_gpu.findings import Change, Finding, Fix, Measure, Severity, Verdict
from tflint_gpu.program.api import position_of
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import External
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Dataset, Stage
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

_READER = "{op} reads its files one after another: the GPU waits for a single read. Pass num_parallel_reads."
_INTERLEAVE = (
    "interleave() without num_parallel_calls reads its files by turns, never at once, while the GPU waits. "
    "Pass tf.data.AUTOTUNE."
)
_FLAT_MAP = (
    "flat_map() reads one file to its end before it opens the next, while the GPU waits. "
    "Use interleave(…, num_parallel_calls=tf.data.AUTOTUNE)."
)
_CSV = "make_csv_dataset reads and parses one file at a time unless num_parallel_reads says more; the GPU waits."
_MAPPED = "This map reads one file per element and asks for no parallel calls; TensorFlow adds them itself."

#: Sources that read records, with the argument that names their files.
_FILES_OF = {**dict.fromkeys(RECORD_READERS, "filenames"), "make_csv_dataset": "file_pattern"}

#: Names of the reading stages in the events of the runtime.
_READING = (
    *(
        "TFRecord",
        "TextLine",
        "FixedLengthRecord",
        "CSV",
        "Csv",
        "Interleave",
        "FlatMap",
        "LegacyParallelInterleaveV2",
    ),
    *("TFRecordV2", "TextLineV2", "FixedLengthRecordV2", "Map", "ParallelInterleaveV4", "ParallelMapV2"),
)


class SerialFileRead(Check):
    """Several files and no stage that reads more than one of them at a time."""

    needles = (
        "interleave",
        "flat_map",
        "RecordDataset",
        "TextLineDataset",
        "CsvDataset",
        "make_csv",
        "list_files",
    )
    experiments = ("parallel-read", "parallel-map")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every stage of a training pipeline that reads files one at a time, unless a cache follows."""
        for pipeline in program.pipelines:
            if pipeline.role not in ("train", "validation"):
                continue
            for stage, outer in all_stages(pipeline.dataset):
                if outer is None and not runs_once(pipeline.dataset, stage):
                    yield from self._stage(pipeline, stage, program.target)

    def _stage(self, pipeline: Pipeline, stage: Stage, target: Target) -> Iterator[Finding]:
        said = self._serial(pipeline, stage, target)
        if said is None:
            return
        message, severity, fix = said
        if pipeline.role == "validation":
            severity = min(severity, Severity.INFO)
        yield self.at(stage.call, message, severity=severity, fix=fix, op=stage.op)

    def _serial(self, pipeline: Pipeline, stage: Stage, target: Target) -> tuple[str, Severity, Fix | None] | None:
        call = stage.call
        if stage.op in _FILES_OF:
            serial = parallel_argument(call.argument("num_parallel_reads")) is False
            if serial and several_files(call.argument(_FILES_OF[stage.op], 0)):
                message = _CSV if stage.op == "make_csv_dataset" else _READER.format(op=stage.op)
                return message, Severity.WARNING, self._fix(call, "num_parallel_reads", "unsafe")
        elif stage.op == "interleave" and asks_parallel(stage) is False and _from_files(stage):
            soft = is_soft(call.argument("num_parallel_calls"))
            draws = any(is_random(inner) for inner in stage.calls)
            fix = None if soft else self._fix(call, "num_parallel_calls", "unsafe" if draws else "safe")
            return _INTERLEAVE, Severity.INFO if soft else Severity.WARNING, fix
        elif stage.op == "flat_map" and _from_files(stage):
            return _FLAT_MAP, Severity.WARNING, self._interleaved(call)
        elif _maps_files(pipeline, stage, target):
            return _MAPPED, Severity.INFO, self._fix(call, "num_parallel_calls", "safe")
        return None

    def _interleaved(self, call: Call) -> Fix:
        """Return the fix for flat_map: which record comes first then depends on which file is faster."""
        title = "interleave the files, in whatever order they come"
        rename = (("name", "interleave"), ("positions", "map_func"))
        parallel = (("name", "num_parallel_calls"), ("value", "{tensorflow.data.AUTOTUNE}, deterministic=False"))
        changes = (Change("rename-call", call.location, rename), Change("add-argument", call.location, parallel))
        return Fix("unsafe", title, changes)

    def _fix(self, call: Call, argument: str, safety: str) -> Fix:
        position = position_of(call.callee, argument)
        return self.change(
            "add-argument",
            call.location,
            f"pass {argument}=tf.data.AUTOTUNE",
            safety=safety,
            name=argument,
            value="{tensorflow.data.AUTOTUNE}",
            position="" if position is None else str(position),
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The own time of the reading stages against what input costs; masked where TensorFlow parallelised it."""
        op = finding.detail.get("op")
        if op == "make_csv_dataset":
            # This one call reads, parses, shuffles and batches: all of its stages are its cost.
            stages = [stage for stage in evidence.pipelines if touches(stage.spot, finding.location)]
        else:
            stages = stages_of(finding, evidence, _READING)
        if not stages:
            return None
        spent = Measure("read_time", round(sum(stage.self_ms for stage in stages), 3), "ms")
        if op == "map" and all(stage.op == "ParallelMapV2" for stage in stages):
            return Judgement(Verdict.MASKED, (spent,))
        change = "parallel-map" if finding.detail.get("op") == "map" else "parallel-read"
        tried = judge_repair(change, evidence, spent)
        if tried is not None:
            return tried
        part = part_of(stages, evidence)
        return None if part is None else judge_input(evidence, part, spent)


def _maps_files(pipeline: Pipeline, stage: Stage, target: Target) -> bool:
    """Say whether a map reads listed files serially and the runtime repairs it, as it does a stateless one."""
    reads = (
        stage.op == "map" and pipeline.dataset.source.op == "list_files" and reads_files(stage.calls) is not None
    )
    repaired = stateful_cause(stage) is None and parallelises(pipeline.dataset, target)
    return reads and asks_parallel(stage) is False and repaired


def _from_files(stage: Stage) -> bool:
    """Say whether the function of an interleave or flat_map surely opens files."""
    for option in options_of(stage.function):
        if isinstance(option, External) and option.name.rpartition(".")[2] in RECORD_READERS:
            return True
    return any(_reads_records(nested) for nested in stage.nested)


def _reads_records(dataset: Dataset) -> bool:
    if dataset.source.op in RECORD_READERS or dataset.source.op in ("make_csv_dataset", "from_generator"):
        return dataset.source.op != "from_generator" or reads_files(dataset.source.calls) is not None
    return any(reads_files(stage.calls) for stage in dataset.stages if stage.op in ("map", "flat_map"))
