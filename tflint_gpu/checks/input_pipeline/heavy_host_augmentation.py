"""TFG120: augmentation that interpolates every pixel, on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.map_functions import called_layers
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Severity, Verdict
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Layers that resample the whole picture; flips, crops, brightness and contrast do not.
LAYERS = frozenset(
    f"keras.layers.{name}"
    for name in (
        "RandomRotation",
        "RandomZoom",
        "RandomTranslation",
        "RandomShear",
        "RandomPerspective",
        "RandomElasticTransform",
        "RandAugment",
        "AugMix",
    )
)

#: Functions that do, by the end of their canonical name.
FUNCTIONS = (
    "tensorflow_addons.image.rotate",
    "tensorflow_addons.image.transform",
    "tensorflow_addons.image.translate",
    "tensorflow_addons.image.shear_x",
    "tensorflow_addons.image.shear_y",
    "tensorflow_addons.image.dense_image_warp",
    "tensorflow_addons.image.sparse_image_warp",
    "tf.raw_ops.ImageProjectiveTransformV2",
    "tf.raw_ops.ImageProjectiveTransformV3",
    "keras.ops.image.affine_transform",
    "keras.ops.image.perspective_transform",
    "keras.ops.image.elastic_transform",
)


class HeavyHostAugmentation(Check):
    """Rotation, zoom, translation and kin inside `Dataset.map` of the training data."""

    needles: ClassVar[tuple[str, ...]] = (
        *(name.rpartition(".")[2] for name in LAYERS),
        "ImageProjectiveTransform",
        "_transform",
        "tensorflow_addons",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield maps of training data that interpolate; only a trace can say whether the cores keep up."""
        yield from loudest(
            self._at(stage, found)
            for pipeline in program.pipelines
            if pipeline.role == "train"
            for _, stage in pipeline.stages_of("map", "map_and_batch")
            if (found := _interpolations(stage))
        )

    def _at(self, stage: Stage, found: list[str]) -> Finding:
        times = f"{len(found)} interpolations" if len(found) > 1 else "an interpolation"
        names = ", ".join(found[:3])
        return self.at(
            stage.call,
            f"{times} of every picture on the CPU ({names}): on a few cores this takes longer than the step and "
            "the GPU waits; fuse them, work on uint8, or move them to the GPU",
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the wait for input where this map has the largest time of its own in the pipeline."""
        own = sum(stage.self_ms for stage in evidence.pipelines if touches(stage.spot, finding.location))
        wait = evidence.share("input_wait")
        if not own or wait is None:
            return None
        total = sum(stage.self_ms for stage in evidence.pipelines)
        measures = (Measure("map_time", own, "ms"), Measure("input_wait_share", round(wait, 4)))
        if own < total / 2:
            return Judgement(Verdict.MINOR, measures)
        return weigh(wait, "step_share", "trace: input wait", *measures, severity=Severity.WARNING)


def _interpolations(stage: Stage) -> list[str]:
    """Return the names of what interpolates in the stage's function, in order."""
    found = []
    for call in stage.calls:
        if call.context.debug:
            continue
        layers: list[Call] = called_layers(call)
        found += [layer.callee for layer in layers if layer.callee in LAYERS]
        if call.callee in FUNCTIONS:
            found.append(call.callee)
    return [name.rpartition(".")[2] for name in dict.fromkeys(found)]
