"""TFG803: workers of one training that each make the whole of the input, or all train on the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import NEGLIGIBLE_MS, judge_input
from tflint_gpu.checks.map_functions import PYTHON_WRAPPERS, library_call
from tflint_gpu.checks.pipelines import DIRECTORY_LOADERS, RECORD_READERS, all_stages, runs_once, several_files
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Fix, Measure, Related, Severity, Verdict
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Const, Dataset, External, Items, Produced
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Stage, Value
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

_STRATEGY = "tf.distribute.MultiWorkerMirroredStrategy"
_OPTION = "auto_shard_policy"

#: Sources that read files and that tf.data can give other files on each worker.
_READERS = RECORD_READERS | {"CsvDataset", "make_csv_dataset"}

#: Where a dataset is made for each worker by hand, the runtime shards nothing.
_BY_HAND = (
    "tf.distribute.Strategy.distribute_datasets_from_function",
    "tf.distribute.Strategy.experimental_distribute_datasets_from_function",
)

#: Work of a map that is worth sharing out.
_DEAR = ("tf.io.decode", "tf.io.read", "tf.image.", "tf.audio.decode", "tf.signal.")


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with a pipeline, and where the cause and, if elsewhere, the dear stage stand."""

    message: str
    place: Location
    qualname: str
    dear: Location | None = None


class AutoshardMismatch(Check):
    """Input pipelines of several workers that the runtime can share out only by throwing elements away."""

    needles: ClassVar[tuple[str, ...]] = ("MultiWorkerMirroredStrategy",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield pipelines under `MultiWorkerMirroredStrategy` that no one shards and the runtime cannot."""
        if program.target.on_tensorflow and not any(program.calls_to(*_BY_HAND)):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        for pipeline, sure in _shared(program):
            fault = _fault(pipeline.dataset, program)
            if fault is not None:
                yield self.at(
                    fault.place,
                    fault.message,
                    severity=None if sure else Severity.INFO,
                    qualname=fault.qualname,
                    related=(Related(fault.dear, "every worker does this for all of them"),) if fault.dear else (),
                    fix=self._by_data(fault, program),
                    wastes=fault.dear is not None,
                )

    def _by_data(self, fault: _Fault, program: Program) -> Fix | str:
        setting = _setting(program)
        if setting is None or setting.location != fault.place:
            return "sharding by worker belongs in front of the dear stages, which is for you to place"
        return self.change(
            "assign-instead",
            setting.location,
            "share out by DATA",
            safety="unsafe",
            text="{tensorflow.data.experimental.AutoShardPolicy.DATA}",
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge a waste by what input costs where several workers ran: two throw half away, more throw more."""
        if finding.detail.get("wastes") and (seen := _thrown_away(evidence)) is not None:
            return judge_input(evidence, 1.0 - 1.0 / seen[0], Measure("thrown_away_time", round(seen[1], 3), "ms"))
        replicas, gpus = evidence.facts.get("replicas"), evidence.environment.device.count
        if not finding.detail.get("wastes") or not isinstance(replicas, int) or replicas <= gpus:
            return None
        return judge_input(evidence, 1.0 - gpus / replicas)

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where hosts wait for input of which they throw a part away."""
        seen = _thrown_away(evidence)
        if seen is None:
            return
        shards, spent = seen
        judged = judge_input(evidence, 1.0 - 1.0 / shards, Measure("thrown_away_time", round(spent, 3), "ms"))
        if judged is None or judged.verdict is not Verdict.CONFIRMED:
            return
        yield self.at(
            place_of(evidence),
            f"each of {shards} workers makes all elements of the input, keeps one in {shards} and waits for them; "
            "shard() file names by worker before the dear stages.",
        ).with_verdict(Verdict.OBSERVED, evidence=judged.measures, impact=judged.impact)


def _thrown_away(evidence: Evidence) -> tuple[int, float] | None:
    """Return among how many workers the input is shared out, and the ms a step that others' elements take a host.

    None where that was not seen, or is nothing to speak of.
    """
    seen = [(host.shards, host.thrown_away_ms) for host in evidence.hosts if host.shards and host.thrown_away_ms]
    if not seen:
        return None
    spent = sum(ms for _, ms in seen) / len(seen)
    return (max(shards for shards, _ in seen), spent) if spent >= NEGLIGIBLE_MS else None


def _shared(program: Program) -> Iterator[tuple[Pipeline, bool]]:
    """Yield the pipelines that train on several workers, and whether that is sure."""
    for run in program.runs:
        if run.pipeline is None:
            continue
        options = [option for option in options_of(run.strategy) if isinstance(option, Produced)]
        found = [option for option in options if option.callee == _STRATEGY]
        if found:
            yield run.pipeline, len(found) == len(options_of(run.strategy))
        elif run.pipeline.dataset.distributed and run.strategy is None:
            made = {call.callee for call in program.calls if call.callee.startswith("tf.distribute.")}
            if _STRATEGY in made and not any(name.endswith("Strategy") for name in made - {_STRATEGY}):
                yield run.pipeline, True


def _fault(dataset: Dataset, program: Program) -> _Fault | None:
    """Return what is wrong with `dataset` on several workers; None where it is sharded, or not known."""
    stages = [stage for stage, _ in all_stages(dataset)]
    policy = _policy(dataset)
    if policy is None or any(stage.op in ("shard", "tfds", "snapshot", "load") for stage in stages):
        return None
    source, setting = dataset.source, _setting(program)
    if policy == "OFF":
        if setting is None or not _same_order(dataset, program):
            return None
        return _Fault(
            "OFF without shard() and in the same order: every worker trains on the same batches, so more GPUs do "
            "the work of one; shard by worker, or use AutoShardPolicy.DATA",
            setting.location,
            setting.qualname,
        )
    readers = [stage for stage in stages if stage.op in _READERS]
    if policy in ("AUTO", "FILE") and readers:
        return _single_file(dataset, readers)
    if policy == "FILE" and setting is not None:
        return _Fault(
            "this input has no reader of files that FILE could shard, and the run fails on every worker; use "
            "AutoShardPolicy.DATA, or shard() the names first",
            setting.location,
            setting.qualname,
        )
    if readers and not several_files(_files(readers[0], dataset)):
        return None  # a single file cannot be shared out in any other way
    dear = next((stage for stage in stages if _is_dear(stage, dataset)), None)
    if dear is None:
        return None
    return _Fault(
        "every worker makes all elements of this input and throws away those of the others, so more workers do "
        "not make it faster; shard() by worker before the dear stages",
        source.location,
        source.call.qualname,
        dear.location,
    )


def _policy(dataset: Dataset) -> str | None:
    """Return the policy in force by name, None where it is not known."""
    if "?" in dataset.options:
        return None
    given = next((value for name, value in dataset.options.items() if name.endswith(_OPTION)), None)
    if given is None:
        return "AUTO"
    return given.name.rpartition(".")[2] if isinstance(given, External) else None


def _setting(program: Program) -> Call | None:
    """Return the assignment that sets the policy."""
    for call in program.calls_to("builtins.setattr"):
        name = call.constant("name", 0)
        if isinstance(name, str) and name.endswith(_OPTION):
            return call
    return None


def _single_file(dataset: Dataset, readers: list[Stage]) -> _Fault | None:
    """Return the fault of a literal single file; with fewer files than workers the runtime gives up (TF 2.21)."""
    files = _files(readers[0], dataset)
    if len(readers) != 1 or not _is_one_name(files):
        return None
    return _Fault(
        "one file cannot be shared out by files, which is what the runtime tries, and the run fails on several "
        "workers; write more files, or use AutoShardPolicy.DATA",
        readers[0].location,
        readers[0].call.qualname,
    )


def _files(reader: Stage, dataset: Dataset) -> Value | None:
    """Return what `reader` reads: its own argument, or, in an interleave, the names that feed it."""
    names = reader.call.argument("filenames", 0) or reader.call.argument("file_pattern", 0)
    return names if dataset.source is reader else dataset


def _is_one_name(value: Value | None) -> bool:
    if isinstance(value, Items):
        return value.complete and len(value.items) == 1
    return isinstance(value, Const) and isinstance(value.value, str) and not any(s in value.value for s in "*?[")


def _is_dear(stage: Stage, dataset: Dataset) -> bool:
    """Say whether each element costs enough at `stage` that making it for another worker is a waste."""
    if stage.op == "from_generator" or stage.op in DIRECTORY_LOADERS:
        return not runs_once(dataset, stage)
    if stage.op not in ("map", "map_and_batch", "flat_map", "interleave"):
        return False
    works = any(
        library_call(call) or call.callee in PYTHON_WRAPPERS or call.callee.startswith(_DEAR)
        for call in stage.calls
    )
    return works and not runs_once(dataset, stage)


def _same_order(dataset: Dataset, program: Program) -> bool:
    """Say whether every worker surely draws the same: nothing shuffles, or all do by one literal seed."""
    seeded = any(program.calls_to("tf.random.set_seed", "keras.utils.set_random_seed"))
    shuffles = [stage for stage, _ in all_stages(dataset) if stage.op in ("shuffle", "shuffle_and_repeat")]
    loaders = [stage for stage in dataset.stages if stage.op in (*DIRECTORY_LOADERS, "list_files")]
    random = [*shuffles, *(stage for stage in loaders if literal(stage.call.argument("shuffle")) is not False)]
    return all(seeded or literal(stage.call.argument("seed")) is not None for stage in random)
