"""TFG121: a nested dataset for every window of a series that is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input, part_of
from tflint_gpu.checks.pipelines import runs_once
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Measure, Related, Severity
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Dataset, Stage
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

#: Sources that are in memory, so that a window can be cut out of them by its index.
_IN_MEMORY = ("from_tensor_slices", "from_tensors", "range")

#: What may stand between a window and the stage that unfolds it.
_BETWEEN = ("shuffle", "take", "skip", "repeat", "filter", "enumerate")

#: Names that the runtime gives to the stages at work.
_STAGES = ("FlatMap", "Window", "Interleave", "WindowDataset")

_MESSAGE = (
    "A dataset of its own is made for every window, and the GPU waits for them. Batch the windows' starts and cut "
    "them with one tf.gather."
)


class PerSampleWindows(Check):
    """Reports ``window(…).flat_map(lambda w: w.batch(n))`` over series in memory."""

    needles: ClassVar[tuple[str, ...]] = (".window(",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the stage that unfolds the windows; those that do not overlap, or are cached, are info."""
        yield from loudest(
            finding
            for pipeline in program.pipelines
            if pipeline.role in ("train", "validation")
            for finding in self._windows(pipeline)
        )

    def _windows(self, pipeline: Pipeline) -> Iterator[Finding]:
        if not in_memory(pipeline.dataset):
            return
        window: Stage | None = None
        for stage in pipeline.stages:
            if stage.op == "window":
                window = stage
            elif stage.op in ("flat_map", "interleave") and window is not None:
                if unfolds(stage) and not stage.call.context.debug:
                    loud = overlaps(window) and pipeline.role == "train" and not runs_once(pipeline.dataset, stage)
                    yield self.at(
                        stage.call,
                        _MESSAGE,
                        severity=Severity.WARNING if loud else Severity.INFO,
                        related=(Related(window.location, "the windows are made here"),),
                        places=(window.location,),
                    )
                window = None
            elif stage.op not in _BETWEEN:
                window = None

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the part of the input's cost that the window and the stage behind it take."""
        places = (finding.location, *finding.detail.get("places", ()))
        here = [stage for stage in evidence.pipelines if any(touches(stage.spot, place) for place in places)]
        stages = here or [stage for stage in evidence.pipelines if stage.op in _STAGES and stage.spot is None]
        part = part_of(stages, evidence)
        if not stages or part is None:
            return None
        spent = Measure("window_time", round(sum(stage.self_ms for stage in stages), 3), "ms")
        return judge_input(evidence, part, spent)


def in_memory(dataset: Dataset) -> bool:
    """Say whether everything that `dataset` draws from lies in memory."""
    source = dataset.source
    return source.op in _IN_MEMORY or (bool(source.nested) and all(map(in_memory, source.nested)))


def unfolds(stage: Stage) -> bool:
    """Say whether a stage's function turns a window back into tensors, by batching it."""
    return any(call.callee.rpartition(".")[2] in ("batch", "padded_batch") for call in stage.calls)


def overlaps(window: Stage) -> bool:
    """Say whether the windows surely overlap: shifted by less than their size."""
    shift, size = constant(window.call.argument("shift")), constant(window.call.argument("size"))
    if not isinstance(shift, int):
        return False
    return shift == 1 or (isinstance(size, int) and shift < size)
