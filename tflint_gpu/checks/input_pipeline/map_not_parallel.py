"""TFG102: a map that runs its function on one element after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import (
    ALL_MAPS,
    FUSED_MAPS,
    LOCKED,
    PARALLEL_MAPS,
    SHARED,
    judge_input,
    judge_repair,
    part_of,
    stages_of,
)
from tflint_gpu.checks.map_functions import has_work, only_draws, stateful_cause
from tflint_gpu.checks.pipelines import all_stages, asks_parallel, is_soft, parallelises, runs_once
from tflint_gpu.findings import Finding, Fix, Measure, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.checks.map_functions import Cause
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

_ADVICE = "pass num_parallel_calls=tf.data.AUTOTUNE."
_MESSAGES = {
    "python": "{name} makes this map stateful: it runs on one element at a time and the GPU waits; " + _ADVICE,
    "stateful": "{name} makes this map stateful, so TensorFlow leaves it serial and the GPU waits; " + _ADVICE,
    "nested": "A map inside {name} stays serial: elements are made one by one while the GPU waits; " + _ADVICE,
    "off": "The dataset's options keep TensorFlow from parallelising this map; the GPU waits; " + _ADVICE,
    "old": "This TensorFlow runs the map on one element at a time, and the GPU waits; " + _ADVICE,
    "asked": "num_parallel_calls=1 keeps this map on one element at a time while the GPU waits; " + _ADVICE,
    "masked": "This map asks for no parallel calls; TensorFlow adds them as its function is stateless.",
}


class MapNotParallel(Check):
    """A map that costs something, asks for no parallel calls and will not get them from the runtime."""

    needles = (".map(",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every serial map of the pipelines that training draws from."""
        for pipeline in program.pipelines:
            if pipeline.role not in ("train", "validation"):
                continue
            for stage, outer in all_stages(pipeline.dataset):
                if stage.op == "map" and asks_parallel(stage) is False:
                    yield from self._serial(pipeline, stage, outer, program.target)

    def _serial(self, pipeline: Pipeline, stage: Stage, outer: Stage | None, target: Target) -> Iterator[Finding]:
        cause = stateful_cause(stage)
        # Every element of a parallel interleave has a worker of its own: a parallel map in it gains nothing.
        if outer is not None and asks_parallel(outer) is not False:
            return
        reason = self._reason(pipeline, stage, outer, cause, target)
        if reason is None or (cause is None and has_work(stage) is not True):
            return
        soft = is_soft(stage.call.argument("num_parallel_calls"))
        severity = Severity.HINT if reason == "masked" else Severity.WARNING
        if severity is Severity.WARNING and (soft or only_draws(stage) or runs_once(pipeline.dataset, stage)):
            severity = Severity.INFO
        if pipeline.role == "validation":
            severity = min(severity, Severity.INFO)
        name = cause.name if cause else outer.op if outer else ""
        yield self.at(
            stage.call,
            _MESSAGES[reason].format(name=name),
            severity=severity,
            fix=None if soft else self._fix(stage, cause),
            reason=reason,
            stateful=cause is not None,
        )

    def _reason(
        self, pipeline: Pipeline, stage: Stage, outer: Stage | None, cause: Cause | None, target: Target
    ) -> str | None:
        if cause is not None:
            return "python" if cause.kind == "python" else "stateful"
        if stage.call.constant("num_parallel_calls") == 1:
            return "asked"
        if outer is not None:
            return "nested"
        if not target.parallelises_maps:
            return "old"
        if not parallelises(pipeline.dataset, target):
            return "off"
        return "masked"

    def _fix(self, stage: Stage, cause: Cause | None) -> Fix:
        safe = cause is None or cause.kind in ("lookup", "variable")
        return self.change(
            "add-argument",
            stage.location,
            "pass num_parallel_calls=tf.data.AUTOTUNE",
            safety="safe" if safe else "unsafe",
            name="num_parallel_calls",
            value="{tensorflow.data.AUTOTUNE}",
            position="1",
        )

    def asks(self, finding: Finding) -> tuple[str, ...]:
        """Ask for a run with parallel maps, where the runtime will not make the map parallel itself."""
        return () if finding.detail.get("reason") == "masked" else ("parallel-map",)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Masked where the rewritten pipeline runs the map in parallel; else what that gives, or its cost."""
        stages = stages_of(finding, evidence, ALL_MAPS)
        if not stages:
            return None
        parallel = PARALLEL_MAPS if finding.detail.get("stateful") else (*PARALLEL_MAPS, *FUSED_MAPS)
        spent = Measure("map_time", round(sum(stage.self_ms for stage in stages), 3), "ms")
        if all(stage.op in parallel for stage in stages):
            return Judgement(Verdict.MASKED, (spent,))
        unsettled = LOCKED if finding.detail.get("reason") == "python" else SHARED
        tried = judge_repair("parallel-map", evidence, spent, unsettled=unsettled)
        if tried is not None:
            return tried
        part = part_of(stages, evidence)
        return None if part is None else judge_input(evidence, part, spent)
