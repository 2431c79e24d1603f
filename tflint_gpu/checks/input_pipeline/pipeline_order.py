"""TFG110: stages in an order that wastes work or memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.map_functions import is_random, reads_files
from tflint_gpu.checks.pipelines import BATCHES, BATCHING_SOURCES, training_pipelines
from tflint_gpu.findings import Change, Finding, Fix, Related, Severity
from tflint_gpu.program.history import exists
from tflint_gpu.program.values import Const
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program

_SHUFFLED_BATCHES = (
    "shuffle() behind batch() mixes whole batches, never samples, and buffers whole batches. Shuffle first."
)
_ENDLESS_CACHE = (
    "cache() behind repeat() never fills: memory grows and every epoch is made again. Cache before repeat()."
)
_MIXED_EPOCHS = "shuffle() behind repeat() mixes epochs: some samples come twice before others come once."
_PARTIAL_CACHE = (
    "take() behind cache() never reads the cache to its end, so the cache is thrown away and made again."
)
_REBATCHED = "unbatch() and batch() take batches apart and join them again on the CPU."
_EARLY_CACHE = "cache() before the map that {does} keeps what was cheap to make. Put cache() behind the map."


class PipelineOrder(Check):
    """``shuffle`` behind ``batch``, ``repeat`` before ``cache`` and other orders that cost."""

    needles = (".shuffle(", ".cache(", ".unbatch(")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every stage of a training pipeline that stands in the wrong place."""
        for pipeline in training_pipelines(program):
            for index, stage in enumerate(pipeline.stages):
                if not stage.conditional:
                    yield from self._misplaced(pipeline, index, stage, program.target)

    def _misplaced(self, pipeline: Pipeline, index: int, stage: Stage, target: Target) -> Iterator[Finding]:
        earlier = [other for other in pipeline.stages[:index] if not other.conditional]
        later = pipeline.stages[index + 1 :]
        if stage.op == "shuffle":
            batch = _batches_shuffled(earlier, later)
            if batch is not None:
                # Padded batches hold samples of like length: they may well be meant to stay together.
                severity = Severity.WARNING if batch.op == "batch" else Severity.INFO
                title = "shuffle first; the buffer then counts samples"
                yield self._at(stage, _SHUFFLED_BATCHES, severity, batch, self._swap(earlier, batch, stage, title))
            elif (repeat := _endless(earlier)) is not None:
                swap = self._swap(earlier, repeat, stage, "shuffle before repeat")
                yield self._at(stage, _MIXED_EPOCHS, Severity.INFO, repeat, swap)
        elif stage.op == "cache":
            if (repeat := _endless(earlier)) is not None:
                swap = self._swap(earlier, repeat, stage, "cache before repeat")
                yield self._at(stage, _ENDLESS_CACHE, Severity.WARNING, repeat, swap)
            elif (work := _work_behind(earlier, later)) is not None:
                stage_behind, does = work
                swap = self._swap(list(later[:1]), stage_behind, stage, "cache behind the map")
                yield self._at(stage, _EARLY_CACHE.format(does=does), Severity.INFO, stage_behind, swap)
        elif stage.op == "take" and earlier and earlier[-1].op == "cache":
            if literal(stage.call.argument("count")) != -1:
                swap = self._swap(earlier, earlier[-1], stage, "take before cache")
                yield self._at(stage, _PARTIAL_CACHE, Severity.INFO, earlier[-1], swap)
        elif _rebatched(stage, earlier):
            fix = self._rebatch(earlier[-1], stage, target)
            known = exists(target, "tf.data.Dataset.rebatch")
            message = f"{_REBATCHED} Batch once, or use rebatch()." if known else f"{_REBATCHED} Batch once."
            yield self._at(stage, message, Severity.INFO, earlier[-1], fix)

    def _at(self, stage: Stage, message: str, severity: Severity, cause: Stage, fix: Fix | str) -> Finding:
        related = (Related(cause.location, f"{cause.op}() stands here"),)
        return self.at(stage.call, message, severity=severity, related=related, fix=fix)

    def _swap(self, neighbours: list[Stage], other: Stage, stage: Stage, title: str) -> Fix | str:
        """Return the fix that lets `stage` and `other` change places, where nothing stands between them."""
        first, second = sorted((other.location, stage.location))
        if not neighbours or other is not neighbours[-1] or first.path != second.path:
            return f"other stages stand between {other.op} and {stage.op}"
        if other.conditional:
            return f"a branch decides whether {other.op} is there"
        return self.change("swap-methods", second, title, safety="unsafe", places=(first,))

    def _rebatch(self, apart: Stage, stage: Stage, target: Target) -> Fix | str:
        if not exists(target, "tf.data.Dataset.rebatch"):
            return "TensorFlow of this version has no rebatch()"
        if (
            stage.call.open
            or set(stage.call.kwargs) - {"batch_size", "drop_remainder"}
            or len(stage.call.args) > 2
        ):
            return "rebatch() does not take the arguments of this batch()"
        if apart.location.path != stage.location.path:
            return "unbatch() and batch() stand in two files"
        rename = (("name", "rebatch"), ("positions", "batch_size,drop_remainder"))
        changes = (Change("drop-method", apart.location), Change("rename-call", stage.location, rename))
        return Fix("safe", "use rebatch(), which does the same without taking batches apart", changes)


def _batches_shuffled(earlier: list[Stage], later: tuple[Stage, ...]) -> Stage | None:
    """Return the batch whose batches are shuffled, None where samples are shuffled too or batches are meant.

    Windows of a text or series are batches that a second ``batch`` joins: shuffling between the two is right.
    """
    if any(stage.op in BATCHES or stage.op in ("unbatch", "flat_map") for stage in later):
        return None
    joined: Stage | None = None
    for stage in earlier:
        if stage.op in BATCHES:
            # A batch of one is its sample: shuffling such batches is shuffling samples.
            joined = stage if literal(stage.call.argument("batch_size")) != 1 else None
        elif stage.op in ("unbatch", "flat_map", "interleave", "window", "group_by_window", "apply"):
            joined = None
        elif stage.op in ("shuffle", "list_files") or stage.op in BATCHING_SOURCES or _shuffles_files(stage):
            return None
    return joined


def _shuffles_files(stage: Stage) -> bool:
    """Say whether TFDS may read its shards in random order: only on demand."""
    if stage.op != "tfds":
        return False
    asked = stage.call.argument("shuffle_files")
    return stage.call.open or not (asked is None or literal(asked) is False)


def _rebatched(stage: Stage, earlier: list[Stage]) -> bool:
    apart = bool(earlier) and earlier[-1].op == "unbatch"
    return stage.op == "batch" and apart and any(other.op in BATCHES for other in earlier)


def _endless(earlier: list[Stage]) -> Stage | None:
    for stage in earlier:
        if stage.op == "repeat":
            count = stage.call.argument("count")
            if count is None or (isinstance(count, Const) and count.value != 1):
                return stage
    return None


def _work_behind(earlier: list[Stage], later: tuple[Stage, ...]) -> tuple[Stage, str] | None:
    """Return the first deterministic map behind a cache that reads files, where the cache holds mere names."""
    if any(stage.op not in ("from_tensor_slices", "list_files", "shuffle") for stage in earlier):
        return None
    for stage in later:
        if stage.op == "cache":
            return None
        if stage.op != "map":
            continue
        if any(is_random(call, stateless_too=True) for call in stage.calls):
            return None
        read = reads_files(stage.calls)
        if read is not None:
            return stage, f"calls {read.callee}"
    return None
