"""TFG106: files read one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input, part_of, stages_of
from tflint_gpu.checks.map_functions import reads_files, stateful_cause
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
from tflint_gpu.findings import Finding, Fix, Measure, Severity, Verdict
from tflint_gpu.program.values import External, options_of

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Call, Dataset, Stage
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
        if stage.op in RECORD_READERS:
            if parallel_argument(call.argument("num_parallel_reads")) is False and several_files(
                call.argument("filenames", 0)
            ):
                return (
                    _READER.format(op=stage.op),
                    Severity.WARNING,
                    self._fix(call, "num_parallel_reads", "unsafe"),
                )
        elif stage.op == "interleave":
            if asks_parallel(stage) is False and _from_files(stage):
                soft = is_soft(call.argument("num_parallel_calls"))
                fix = None if soft else self._fix(call, "num_parallel_calls", "safe")
                return _INTERLEAVE, Severity.INFO if soft else Severity.WARNING, fix
        elif stage.op == "flat_map":
            if _from_files(stage):
                return _FLAT_MAP, Severity.WARNING, None
        elif stage.op == "make_csv_dataset":
            if parallel_argument(call.argument("num_parallel_reads")) is False and several_files(
                call.argument("file_pattern", 0)
            ):
                return _CSV, Severity.WARNING, self._fix(call, "num_parallel_reads", "unsafe")
        elif _maps_files(pipeline, stage, target):
            return _MAPPED, Severity.INFO, self._fix(call, "num_parallel_calls", "safe")
        return None

    def _fix(self, call: Call, argument: str, safety: str) -> Fix:
        positions = {"interleave": {"num_parallel_calls": "3"}, "map": {"num_parallel_calls": "1"}}
        position = positions.get(call.callee.rpartition(".")[2], {"num_parallel_reads": "3"}).get(argument, "")
        if call.callee.endswith("make_csv_dataset"):
            position = ""
        return self.change(
            "add-argument",
            call.location,
            f"pass {argument}=tf.data.AUTOTUNE",
            safety=safety,
            name=argument,
            value="AUTOTUNE",
            position=position,
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The own time of the reading stages against what input costs; masked where TensorFlow parallelised it."""
        stages = stages_of(finding, evidence, _READING)
        if not stages:
            return None
        spent = Measure("read_time", round(sum(stage.self_ms for stage in stages), 3), "ms")
        if finding.detail.get("op") == "map" and all(stage.op == "ParallelMapV2" for stage in stages):
            return Judgement(Verdict.MASKED, (spent,))
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
