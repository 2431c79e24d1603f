"""TFG122: a split by ``skip`` or ``shard`` that decodes what it throws away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.images import decodes
from tflint_gpu.checks.input_costs import judge_map
from tflint_gpu.checks.map_functions import PYTHON_WRAPPERS, library_call
from tflint_gpu.checks.pipelines import DIRECTORY_LOADERS
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Related
from tflint_gpu.program.questions import constant

if TYPE_CHECKING:
    from tflint_gpu.program.values import Dataset, Stage
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Skips of fewer elements than this jump over a header or look at a sample.
FEW = 8

#: Behind these nothing is decoded again.
_KEPT = ("cache", "snapshot", "load", "save")


class SplitAfterDecode(Check):
    """Reports ``skip`` and ``shard`` behind maps that decode, in data for training and validation."""

    needles: ClassVar[tuple[str, ...]] = ("skip", "shard")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield each such stage once; ``take`` stops by itself and wastes nothing."""
        yield from loudest(
            finding
            for pipeline in program.pipelines
            if pipeline.role in ("train", "validation")
            for finding in self._splits(pipeline.dataset)
        )

    def _splits(self, dataset: Dataset) -> Iterator[Finding]:
        dear: Stage | None = None
        for stage in dataset.stages:
            if stage.op in _KEPT:
                dear = None
            elif stage.op in DIRECTORY_LOADERS or (stage.op in ("map", "map_and_batch") and _decodes(stage)):
                dear = stage
            elif stage.op in ("skip", "shard") and dear is not None and not stage.call.context.debug:
                count = constant(stage.call.argument("count"))
                if stage.op == "skip" and isinstance(count, int) and count < FEW:
                    continue
                yield self.at(
                    stage.call,
                    f"{stage.op}() behind the decoder decodes what it throws away, in every epoch, and the GPU "
                    "waits. Split the file names or indices before they are read.",
                    related=(Related(dear.location, "what is thrown away is decoded here"),),
                    stage=dear.location,
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the part of the input's cost that the decoding takes: more than the split could give back."""
        return judge_map(finding, evidence)


def _decodes(stage: Stage) -> bool:
    """Say whether a map decodes or reads samples: pictures, sound, or anything in Python."""
    return decodes(stage) is not None or any(
        library_call(call) or call.callee in PYTHON_WRAPPERS or call.callee.startswith("tf.audio.decode")
        for call in stage.calls
    )
