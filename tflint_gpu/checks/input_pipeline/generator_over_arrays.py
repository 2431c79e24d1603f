"""TFG113: Python code that hands over, piece by piece, arrays that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.arrays import NEXT, Picked, over_arrays
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import callable_function, generator_function, is_pydataset
from tflint_gpu.checks.input_costs import judge_python
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Function, Instance

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

_ROWS = (
    "Rows of arrays that are in memory pass through Python one by one while the GPU waits. "
    "Pass the arrays to fit(), or use from_tensor_slices and batch."
)
_BATCHES = (
    "Python slices batches out of arrays that are in memory, and the GPU may wait for it. "
    "Pass the arrays to fit(), which shuffles and prefetches them."
)


class GeneratorOverArrays(Check):
    """A generator or PyDataset whose elements are rows of arrays in memory, and nothing more."""

    needles: ClassVar[tuple[str, ...]] = ("yield", "from_generator", "__getitem__", "__next__")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the Python input of training that only picks rows; a batch at a time costs little: info."""
        yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        for call, from_arrays in over_arrays(program):
            if call.callee == "tf.data.Dataset.from_generator":
                function = callable_function(call.argument("generator"))
                yield self._at(call, call, from_arrays, function, _consumer(call, program))
            elif call.callee == NEXT:
                yield self._at(call, call, from_arrays, generator_function(call.args[0]), None)
            else:
                for run in program.runs:
                    if run.call is call:
                        yield from self._fed(run, call, from_arrays)

    def _fed(self, run: TrainingRun, call: Call, from_arrays: Picked) -> Iterator[Finding]:
        for data in options_of(run.data):
            function = generator_function(data)
            if isinstance(data, Instance) and is_pydataset(data):
                item = data.cls.find("__getitem__")
                function = item if isinstance(item, Function) else None
            if function is not None:
                yield self._at(run.call, call, from_arrays, function, None)

    def _at(
        self, place: Call | None, call: Call, from_arrays: Picked, function: Function | None, consumer: Call | None
    ) -> Finding:
        related = [Related(function.location, "this picks the rows")] if function else []
        if consumer is not None:
            related.append(Related(consumer.location, "training draws from it here"))
        name = "generator" if call.callee.endswith(("_generator", "from_generator")) else "x"
        return self.at(
            call if name != "x" or place is None else call.place_of("x"),
            _BATCHES if from_arrays.rows else _ROWS,
            severity=Severity.INFO if from_arrays.rows else Severity.WARNING,
            qualname=call.qualname,
            related=tuple(related),
            fix=self._fix(call),
            names=(function.name,) if function else (),
        )

    def _fix(self, call: Call) -> Fix | str:
        if call.callee != "tf.data.Dataset.from_generator":
            return "arrays passed to fit() are shuffled and batched by its own arguments; set those too"
        title = "use from_tensor_slices, which copies the arrays and keeps their types"
        return self.change("slices-of-arrays", call.location, title, safety="unsafe")

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The time that each step spends in that Python code, and what input costs as a whole, decide."""
        return judge_python(finding, evidence, "generator", "PyDataset")


def _consumer(call: Call, program: Program) -> Call | None:
    for pipeline in program.pipelines:
        if pipeline.role == "train" and pipeline.dataset.source.call is call:
            return pipeline.consumer if isinstance(pipeline.consumer, Call) else None
    return None
