"""TFG607: a layer that makes Keras 3 give up XLA for the whole model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Finding, Related, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const

if TYPE_CHECKING:
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Evidence

#: Image layers whose class sets ``supports_jit = False`` (read in Keras 3.15; the first four do so since 3.0).
#: Layers of strings do too, but they are string-layer-in-model's; recurrent ones trade XLA for cuDNN, and win.
WITHOUT_JIT = frozenset(
    f"keras.layers.{name}"
    for name in (
        "RandomRotation",
        "RandomZoom",
        "RandomTranslation",
        "RandomCrop",
        "RandomShear",
        "RandomPerspective",
        "RandAugment",
        "AugMix",
    )
)


class JitSilentlyDisabled(Check):
    """Reports augmentation layers inside compiled Keras 3 models that would be compiled by XLA otherwise."""

    needles = tuple(sorted(name.rpartition(".")[2] for name in WITHOUT_JIT))
    experiments = ("xla",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a layer; models that are never compiled (preprocessing in the dataset) have none."""
        if not program.target.on_tensorflow or program.target.legacy_keras:
            return
        for model in program.models:
            compiled = next((call for call in model.compiles if asks_for_jit(call)), None)
            if compiled is None or is_distributed(model, compiled):
                continue
            for layer in model.layers:
                if layer.callee in WITHOUT_JIT:
                    name = layer.callee.rpartition(".")[2]
                    yield self.at(
                        layer,
                        f"{name} does not support XLA, so Keras runs the whole model without it, in more and "
                        "smaller kernels. Move it into the dataset.",
                        related=(Related(compiled.location, "compiled without XLA because of it"),),
                    )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run with XLA on; a step that was compiled anyway refutes the finding."""
        if evidence.facts.get("jit") is True:
            return Judgement(Verdict.REFUTED)
        return by_repair(evidence.experiment("xla"))


def asks_for_jit(compiled: Call) -> bool:
    """Say whether ``compile`` leaves XLA to Keras or asks for it, and nothing else rules it out."""
    if compiled.constant("run_eagerly") or compiled.open:
        return False
    value = compiled.argument("jit_compile")
    return value is None or (isinstance(value, Const) and value.value in (True, "auto"))


def is_distributed(model: Model, compiled: Call) -> bool:
    """Say whether a strategy is active: Keras leaves XLA off then, whatever the layers are."""
    contexts = [compiled.context, *([model.call.context] if model.call else [])]
    return any(context.scope("strategy") is not None for context in contexts)
