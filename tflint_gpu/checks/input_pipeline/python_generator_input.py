"""TFG103: training fed by a Python generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.arrays import over_arrays
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import (
    callable_function,
    calls_inside,
    costly,
    generator_function,
    image_flow,
    simulates,
)
from tflint_gpu.checks.input_costs import judge_python
from tflint_gpu.checks.loops import drives_environment
from tflint_gpu.checks.pipelines import all_stages, runs_once
from tflint_gpu.findings import Finding, Location, Related, Severity
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Dataset

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Function, Stage
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

_WORKING = (
    "A Python generator makes every batch on one core ({work}), and the GPU waits. "
    "Read with tf.data, or a PyDataset with workers."
)
_PLAIN = (
    "A Python generator feeds training from one core. Where it only picks rows of arrays, pass the arrays; "
    "else read with tf.data, or a PyDataset with workers."
)
_FLOW = (
    "ImageDataGenerator loads and augments in Python on one core, and the GPU waits. "
    "Use image_dataset_from_directory and random layers."
)
_SIMULATED = (
    "A Python generator simulates every sample on one core; the GPU waits for it. Simulate several at once."
)


class PythonGeneratorInput(Check):
    """A generator, an ``ImageDataGenerator`` or ``from_generator`` that feeds training."""

    needles = ("yield", "from_generator", "ImageDataGenerator", "__next__", "fit_generator")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the generator behind every training run that draws from one."""
        # Where the generator only picks rows out of arrays, generator-over-arrays has the better advice.
        told = {call for call, _ in over_arrays(program)}
        for pipeline in program.pipelines:
            if pipeline.role == "train":
                for stage, _ in all_stages(pipeline.dataset):
                    fresh = stage.op == "from_generator" and not runs_once(pipeline.dataset, stage)
                    if fresh and stage.call not in told:
                        yield self._from_generator(stage, pipeline.location)
        for run in program.runs:
            if run.pipeline is None and run.call not in told:
                yield from self._fed(run, program)

    def _from_generator(self, stage: Stage, consumer: Location) -> Finding:
        function = callable_function(stage.function)
        return self._generator(stage.call, list(stage.calls), function, consumer)

    def _fed(self, run: TrainingRun, program: Program) -> Iterator[Finding]:
        if run.loop is not None and drives_environment(run.loop):
            return
        drawn = _drawn_by_next(run)
        if drawn is not None:
            source, calls = drawn
            yield self._generator(run.location, calls, source, run.location, run.qualname)
            return
        for data in options_of(run.data):
            flow = image_flow(data)
            if flow is not None:
                yield self.at(flow, _FLOW, related=(Related(run.location, "training draws from it here"),))
            elif (function := generator_function(data)) is not None:
                place = (
                    run.call.place_of("generator" if run.call.callee.endswith("_generator") else "x")
                    if run.call
                    else None
                )
                yield self._generator(
                    place or run.location,
                    list(calls_inside(program, function)),
                    function,
                    run.location,
                    run.qualname,
                )

    def _generator(
        self,
        place: Call | Location,
        calls: list[Call],
        function: Function | None,
        consumer: Location,
        qualname: str = "",
    ) -> Finding:
        work = costly(calls)
        if simulates(calls):
            message, severity = _SIMULATED, Severity.INFO
        elif work is not None:
            message, severity = _WORKING.format(work=work.callee.replace("()", "")), Severity.WARNING
        else:
            message, severity = _PLAIN, Severity.INFO
        related = [Related(consumer, "training draws from it here")]
        if function is not None:
            related.append(Related(function.location, "this is the generator"))
        return self.at(
            place,
            message,
            severity=severity,
            qualname=qualname,
            related=tuple(related),
            names=(function.name,) if function else (),
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The time of the generator's steps and what input costs as a whole decide."""
        return judge_python(finding, evidence, "generator")


def _drawn_by_next(run: TrainingRun) -> tuple[Function, list[Call]] | None:
    """Return the generator that a loop draws from by ``next`` for each step, with the costly calls in its body."""
    if run.loop is None or isinstance(run.data, Dataset):
        return None
    inside = [
        (frame.function, call)
        for call in run.loop.calls
        if call.context.region == "" and costly([call])
        for frame in call.context.activations
        if getattr(frame.function.node, "is_generator", False)
    ]
    return (inside[0][0], [call for _, call in inside]) if inside else None
