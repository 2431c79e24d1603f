"""TFG608: XLA compiles anew for every batch shape it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.graph.jit_silently_disabled import asks_for_jit, is_distributed
from tflint_gpu.checks.graph.xla_off import better_without
from tflint_gpu.checks.shapes import length_stage, varying_lengths
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Related, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence


class XlaShapeChurn(Check):
    """Reports compiled steps that are fed batches of changing length."""

    needles = ("padded_batch", "bucket_by_sequence_length", "to_tensor", "TextVectorization")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield compiled functions at their making, and what `fit` compiles at the stage that pads."""
        if not program.target.on_tensorflow:
            return
        for function in program.functions:
            if not function.jit:
                continue
            fed = (varying_lengths(value) for call in function.calls for value in call.args)
            stage = next((stage for stage in fed if stage is not None), None)
            if stage is not None:
                yield self.at(
                    function.made,
                    "XLA compiles this function again for each new batch length, and the GPU waits. "
                    "Pad to one length or a few buckets, or leave XLA off.",
                    related=(Related(stage.location, "batches of changing length are made here"),),
                )
        for run in program.runs:
            severity = self._of_fit(run, program)
            stage = length_stage(run.pipeline.dataset) if severity is not None and run.pipeline else None
            if stage is not None:
                yield self.at(
                    stage.call,
                    "Batches of changing length make XLA compile the model again for each new one, and the GPU "
                    "waits. Pad to one length or a few buckets.",
                    severity=severity,
                )

    def _of_fit(self, run: TrainingRun, program: Program) -> Severity | None:
        """Return how loud to be about a model that `fit` compiles with XLA; None where it does not, or may not."""
        model = run.model
        if run.kind != "fit" or model is None or better_without(model):
            return None
        compiled = model.compiles[-1] if model.compiles else None
        if compiled is None or not asks_for_jit(compiled) or is_distributed(model, compiled):
            return None
        if compiled.constant("jit_compile") is True:
            return self.severity
        # Left to itself only Keras 3 turns XLA on, and only if each of the layers allows it.
        by_itself = not program.target.legacy_keras and model.complete
        return Severity.INFO if by_itself else None

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that compilation takes after warm-up; a step without XLA refutes the finding."""
        if evidence.facts.get("jit") is False and not any(traced.jit for traced in evidence.functions):
            return Judgement(Verdict.REFUTED)
        share = evidence.share("compile")
        if share is None:
            return None
        own, again = evidence.facts.get("own_step_ms"), evidence.step_ms
        if own and again:
            # The loop was prolonged with the same batches, whose shapes were compiled by then.
            share = max(share, 1.0 - again / own)
        return weigh(share, "compile_share", "trace: compilation after warm-up")
