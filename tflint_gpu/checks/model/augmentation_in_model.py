"""TFG303: random image layers inside the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.first_layers import to_map
from tflint_gpu.checks.graph.jit_silently_disabled import WITHOUT_JIT, asks_for_jit, is_distributed
from tflint_gpu.checks.input_pipeline.heavy_host_augmentation import LAYERS
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Related, Severity
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Evidence

#: Versions whose random layers work picture by picture: vectorized-map-fallback speaks of them.
_LOOPING = ((2, 9), (2, 10))

_INTERPOLATES = (
    "{name} resamples every picture inside the training step, and the rest of the step waits for it. If the CPU "
    "has cores to spare, apply it in Dataset.map."
)
_LIGHT = (
    "{name} augments inside the training step. It is cheap, but if the CPU has cores to spare Dataset.map takes "
    "it off the GPU."
)


class AugmentationInModel(Check):
    """Reports random layers of trained models, where no other rule has a stronger word on them."""

    needles: ClassVar[tuple[str, ...]] = ("Random", "RandAugment", "AugMix")
    only_on_gpu: ClassVar[str] = "what these ops cost there"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a model, at the dearest of its random layers."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._models(program))

    def _models(self, program: Program) -> Iterator[Finding]:
        for model in program.models:
            found = random_layers_of(model)
            if not model.trained or not found or _told(model, found, program.target):
                continue
            heavy = [layer for layer in found if layer.callee in LAYERS]
            first = (heavy or found)[0]
            message = _INTERPOLATES if heavy else _LIGHT
            yield self.at(
                first,
                message.format(name=first.callee.rpartition(".")[2]),
                severity=Severity.INFO if heavy else Severity.HINT,
                related=tuple(Related(layer.location, "so does this") for layer in found if layer is not first),
                places=tuple(layer.location for layer in found),
                fix=to_map(model, found, program, text=False),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that the ops of these layers take in the step; None where they were not timed."""
        places = (finding.location, *finding.detail.get("places", ()))
        timed = [
            placement.ms
            for placement in evidence.placements
            if placement.in_step and placement.ms is not None
            if any(touches(placement.spot, place) for place in places)
        ]
        if not timed or not evidence.step_ms or evidence.environment.device.kind != "gpu":
            return None
        spent = Measure("augmentation_time", round(sum(timed), 3), "ms")
        share = min(1.0, sum(timed) / evidence.step_ms)
        return weigh(share, "augmentation_share", "trace: time of these ops", spent, severity=Severity.WARNING)


def random_layers_of(model: Model) -> list[Call]:
    """Return the constructions of the image layers of `model` that augment at random, in order."""
    return [
        layer
        for layer in model.layers
        if layer.callee in LAYERS | WITHOUT_JIT
        or (layer.callee.startswith("keras.layers.Random") and not layer.callee.endswith("FourierFeatures"))
    ]


def _told(model: Model, found: list[Call], target: Target) -> bool:
    """Say whether another rule speaks of these layers: of XLA that they switch off, or of loops over pictures."""
    if target.legacy_keras:
        return target.tensorflow in _LOOPING
    if not any(layer.callee in WITHOUT_JIT for layer in found):
        return False
    compiled = next((call for call in model.compiles if asks_for_jit(call)), None)
    return compiled is not None and not is_distributed(model, compiled)
