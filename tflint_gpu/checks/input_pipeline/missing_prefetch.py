"""TFG101: a training dataset that ends in a synchronous transformation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import AHEAD, judge_repair, rewritten, without_gpu
from tflint_gpu.checks.pipelines import BATCHES, PASSING, fused_batch, injects_prefetch, last_working, runs_ahead
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Change, Finding, Fix, Measure, Related, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

_SYNCHRONOUS = "{op}() ends the pipeline without prefetch: each batch is made while the GPU waits. Append {call}."
_INJECTED = (
    "{op}() ends the pipeline without prefetch; TensorFlow {version} adds one itself. "
    "Append {call} to have it in every version."
)
_FUSED = "map and {op}() are fused and make one batch ahead; steps that vary still wait. Append {call}."
#: Stages of the runtime that hand on what comes, without work of their own.
_HANDS_ON = ("FiniteRepeat", "ForeverRepeat", "FiniteTake", "Take", "FiniteSkip", "Options", "AssertCardinality")

#: Stages so cheap that a prefetch in front of them hides nothing that one behind them does not.
_CHEAP = BATCHES | PASSING | {"shuffle", "cache"}

_CALL = ".prefetch(tf.data.AUTOTUNE)"


class MissingPrefetch(Check):
    """The last stage of the training pipeline is synchronous."""

    needles = (".fit", "GradientTape", "apply_gradients", "minimize", "train_on_batch")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the end of every pipeline that reaches training with nothing at its end that runs ahead."""
        for run in program.runs:
            if run.strategy is not None:
                continue
            if run.pipeline is not None:
                yield from self._end(run.pipeline, run, program)
            if run.validation is not None:
                yield from self._end(run.validation, run, program)

    def _end(self, pipeline: Pipeline, run: TrainingRun, program: Program) -> Iterator[Finding]:
        dataset, target = pipeline.dataset, program.target
        if pipeline.distributed or dataset.distributed or runs_ahead(dataset, target) is not False:
            return
        last = dataset.last
        injected = injects_prefetch(dataset, target)
        fused = fused_batch(dataset)
        if fused and injected:
            return
        template = _INJECTED if injected else _FUSED if fused else _SYNCHRONOUS
        message = template.format(
            op=last_working(dataset).op, call=_CALL, version=".".join(map(str, target.tensorflow))
        )
        severity = Severity.INFO if injected or fused else Severity.WARNING
        if pipeline.role == "validation":
            severity = Severity.HINT
        yield self.at(
            last.call,
            message,
            severity=severity,
            related=(Related(run.location, "this loop draws from it"),),
            fix=self._fix(pipeline, program),
            injected=injected,
        )

    def _fix(self, pipeline: Pipeline, program: Program) -> Fix:
        parameters = (("argument", "{tensorflow.data.AUTOTUNE}"), ("method", "prefetch"))
        append = Change("append-method", pipeline.dataset.last.location, parameters)
        early = _early_prefetch(pipeline, program)
        if early is None:
            return Fix("safe", f"append {_CALL}", (append,))
        return Fix(
            "safe", f"move the prefetch to the end: {_CALL}", (Change("drop-method", early.location), append)
        )

    def asks(self, finding: Finding) -> tuple[str, ...]:
        """Ask for a run with a prefetch, where the runtime has none of its own."""
        return () if finding.detail.get("injected") else ("prefetch",)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Masked where the runtime put a prefetch at the end; else what one gives, or the wait to overlap."""
        chain = rewritten(evidence, finding)
        waiting = evidence.share("input_wait")
        if not chain or waiting is None:
            return None
        end = next((part for part in chain if part not in _HANDS_ON), "")
        if end == "Prefetch" and finding.detail.get("injected") is False and not _fused_below(chain):
            # The traced TensorFlow put it there; the version that the project asks for does not.
            return None
        if end in AHEAD:
            return Judgement(Verdict.MASKED, (Measure("input_wait_share", round(waiting, 4)),))
        tried = judge_repair("prefetch", evidence, Measure("input_wait_share", round(waiting, 4)))
        if tried is not None:
            return tried
        # Perfect overlap makes a step as long as the longer of the two, so it saves the shorter one.
        overlap = min(waiting, 1.0 - waiting)
        basis = "trace: wait for input that could overlap the step"
        judged = weigh(overlap, "overlap_share", basis, Measure("input_wait_share", round(waiting, 4)))
        return without_gpu(judged, evidence, waiting * (evidence.step_ms or 0.0))


def _early_prefetch(pipeline: Pipeline, program: Program) -> Stage | None:
    """Return the prefetch that had better stand at the end: only cheap stages follow it, in every pipeline."""
    found = [stage for _, stage in pipeline.stages_of("prefetch")]
    if len(found) != 1 or found[0].conditional or found[0].location.path != pipeline.dataset.last.location.path:
        return None
    for other in program.pipelines:
        for index, stage in enumerate(other.stages):
            if stage.location == found[0].location:
                later = other.stages[index + 1 :]
                same_end = other.dataset.last.location == pipeline.dataset.last.location
                if not same_end or any(after.op not in _CHEAP for after in later):
                    return None
    return found[0]


def _fused_below(chain: tuple[str, ...]) -> bool:
    """Say whether what stands under the outermost prefetch runs ahead by itself."""
    below = (part for part in chain[chain.index("Prefetch") + 1 :] if part not in _HANDS_ON)
    return next(below, "") in AHEAD
