"""TFG801: a batch that is not scaled by the number of replicas it is split over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.verdicts import by_repair, weigh
from tflint_gpu.findings import Finding, Fix, Location, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Const, Items, Mapping, Produced
from tflint_gpu.program.views import TrainingRun, produced_by

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Below this many samples a replica the GPUs run small kernels and wait for each other.
STARVED = 16

#: From this many on a replica has work enough.
FED = 64

#: What Keras takes where nobody says a batch size.
DEFAULT = 32

_MIRRORED = (
    "tf.distribute.MirroredStrategy",
    "tf.distribute.MultiWorkerMirroredStrategy",
    "tf.distribute.experimental.MultiWorkerMirroredStrategy",
    "tf.distribute.experimental.CentralStorageStrategy",
)
_LEGACY = "keras.utils.multi_gpu_model"
_BATCHES = ("batch", "padded_batch", "ragged_batch", "map_and_batch")
_PER_REPLICA = (
    "tf.distribute.Strategy.distribute_datasets_from_function",
    "tf.distribute.Strategy.experimental_distribute_datasets_from_function",
)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A literal global batch and the place that states it."""

    size: int
    soft: bool
    place: Location
    qualname: str
    stated: bool = True


class ReplicaBatchStarved(Check):
    """Reports literal batch sizes that a strategy splits into small ones."""

    needles = ("Strategy", "multi_gpu_model")
    only_on_gpu: ClassVar[str] = "what its collectives cost"
    experiments = ("batch-x2",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a batch size; unknown numbers of replicas count as two."""
        if not program.target.on_tensorflow or any(program.calls_to(*_PER_REPLICA)):
            return
        for (count, sure), batch, strategy in _splits(program):
            severity = self._severity(batch.size, count)
            if severity is None:
                continue
            split = f"{batch.size // count} a GPU" if count else "half of it or less a GPU"
            yield self.at(
                batch.place,
                f"The strategy splits this batch of {batch.size}: {split}, so the GPUs run small kernels and wait "
                "for each other. Multiply by num_replicas_in_sync.",
                severity=Severity.INFO if batch.soft or not sure else severity,
                qualname=batch.qualname,
                fix=self._scaled(batch, strategy),
            )

    def _scaled(self, batch: _Batch, strategy: Call | None) -> Fix | str:
        if strategy is None:
            return "no one strategy splits this batch"
        if batch.soft:
            return "a default that the user may override says how large the batch is"
        if batch.size == DEFAULT and not batch.stated:
            return "the batch size is Keras' default; state one"
        if strategy.location.path != batch.place.path:
            return "strategy and batch size stand in two files"
        return self.change(
            "rewrite",
            batch.place,
            "multiply by num_replicas_in_sync; scale the learning rate too",
            safety="unsafe",
            text="$ * @.num_replicas_in_sync",
            literal="yes",
            places=(strategy.location,),
        )

    def _severity(self, size: int, replicas: int | None) -> Severity | None:
        if replicas is None:
            return self.severity if size < 2 * STARVED else None
        if replicas < 2 or size // replicas >= FED:
            return None
        return self.severity if size // replicas < STARVED else Severity.INFO

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by a larger batch, else by the time that collectives take; one device says nothing of several."""
        count, share = evidence.environment.device.count, evidence.share("collectives")
        if evidence.gpu_busy_share is None or count < 2 or share is None:
            return None
        size = evidence.window.batch_size if evidence.window else None
        if size is not None and size // count >= FED:
            return Judgement(Verdict.REFUTED, (Measure("batch_per_replica", size // count),))
        measures = () if size is None else (Measure("batch_per_replica", size // count),)
        tried = by_repair(evidence.experiment("batch-x2"))
        if tried is not None:
            return replace(tried, measures=(*tried.measures, *measures))
        return weigh(share, "collectives_share", "trace: collectives", *measures)


def _splits(program: Program) -> Iterator[tuple[tuple[int | None, bool], _Batch, Call | None]]:
    """Yield how many replicas share a batch (None: not known), whether that is sure, the batch, the strategy."""
    for run in program.runs:
        spread = _replicas(run)
        batch = _batch(run) if spread else None
        if spread is not None and batch is not None:
            yield spread, batch, produced_by(run.strategy, *_MIRRORED)
    for fit in program.calls_to(f"{_LEGACY}().fit"):
        made = fit.receiver.call if isinstance(fit.receiver, Produced) else None
        count = made.constant("gpus", 1) if made else None
        batch = _literal(fit, None)
        if batch is not None:
            yield (count if isinstance(count, int) else None, True), batch, None


def _replicas(run: TrainingRun) -> tuple[int | None, bool] | None:
    """Return how many replicas share a batch of `run` (None: not known) and whether that is sure; None for one."""
    if run.strategy is None:
        return None
    options = options_of(run.strategy)
    found = [option.call for option in options if isinstance(option, Produced) and option.callee in _MIRRORED]
    if not found:
        return None
    counts = {_devices(call) for call in found}
    return (counts.pop() if len(counts) == 1 else None), len(found) == len(options)


def _devices(call: Call) -> int | None:
    devices = call.argument("devices", 0)
    if call.callee.endswith(".MirroredStrategy") and isinstance(devices, Items) and devices.complete:
        return len(devices.items)
    return None


def _batch(run: TrainingRun) -> _Batch | None:
    if run.pipeline is not None:
        for stage in reversed(run.pipeline.stages):
            if stage.op in _BATCHES or (stage is run.pipeline.dataset.source and "dataset_from" in stage.op):
                fallback = DEFAULT if stage.op not in _BATCHES else None
                return _literal(stage.call, fallback) if not stage.conditional else None
            if stage.op in ("unbatch", "rebatch", "flat_map", "interleave", "bucket_by_sequence_length"):
                return None
        return None
    if run.kind != "fit" or run.call is None:
        return None
    given = run.call.argument("batch_size")
    # Without a batch size only arrays are known to come in batches of 32.
    arrays = isinstance(run.data, (Items, Mapping)) or (
        isinstance(run.data, Produced) and run.data.callee.startswith("numpy.")
    )
    return _literal(run.call, DEFAULT if arrays and given is None else None)


def _literal(call: Call, fallback: int | None) -> _Batch | None:
    value = call.argument("batch_size")
    if value is None and fallback is not None and not call.open:
        return _Batch(fallback, False, call.location, call.qualname, stated=False)
    if not isinstance(value, Const) or not isinstance(value.value, int) or value.value <= 0:
        return None
    return _Batch(value.value, value.soft, call.place_of("batch_size"), call.qualname)
