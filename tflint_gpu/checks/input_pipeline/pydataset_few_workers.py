"""TFG104: a PyDataset (Sequence) that makes its batches with one worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import (
    PYDATASET,
    calls_inside,
    costly,
    generator_function,
    image_flow,
    is_pydataset,
)
from tflint_gpu.checks.input_costs import LOCKED, judge_python, judge_repair
from tflint_gpu.findings import Finding, Fix, Location, Related, Severity
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Const, Dataset, Function, Instance, Items, Mapping, Produced, Unknown

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

_NO_WORKERS = (
    "{name} runs with workers=1: Keras makes each batch ({work}) between steps, and the GPU waits. "
    "Pass workers to super().__init__()."
)
_NO_SUPER = (
    "{name} never calls super().__init__(**kwargs), so it has no workers: each batch ({work}) is made between "
    "steps while the GPU waits."
)
_NOT_GIVEN = (
    "{name} is made without workers: Keras makes each batch ({work}) between steps, and the GPU waits. "
    "Pass workers=8."
)
_FIT = "fit() draws from {name} with one worker: batches ({work}) are late and the GPU waits. Pass workers=8."
_SLOW = "{work} makes a batch sample by sample in Python; with one worker the GPU waits for all of them."
_GONE = (
    "fit() no longer takes {argument} in Keras 3, so batches are made with one worker. Give it to the PyDataset."
)
_IGNORED = (
    "{argument} does nothing for a generator: one thread makes every batch and the GPU waits. Use a PyDataset."
)
_NO_USE = (
    "fit() no longer takes {argument} in Keras 3, and for arrays and tf.data it never did anything: leave it out."
)
_ARGUMENTS = ("workers", "use_multiprocessing", "max_queue_size")


#: Workers that the fix asks for, as the messages say.
WORKERS = 8

#: What to say of a dataset, where, and the repair.
_Said = tuple[str, Location, Fix | str]

_GENERATORS_OWN = "Keras 3 has no fit_generator(); call fit(), and give workers to the dataset"


class PydatasetFewWorkers(Check):
    """A PyDataset whose ``__getitem__`` works hard and that no second worker helps."""

    needles = ("Sequence", "PyDataset", "workers", "use_multiprocessing")
    experiments = ("workers-4",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield the data of every training run that one worker makes, and workers given where they do nothing."""
        for run in program.runs:
            if run.call is None or run.kind != "fit":
                continue
            misplaced = list(self._misplaced(run, run.call, program.target))
            yield from misplaced
            for data in options_of(run.data):
                if isinstance(data, Instance) and is_pydataset(data) and not misplaced:
                    yield from self._dataset(data, run, run.call, program)

    def _misplaced(self, run: TrainingRun, fit: Call, target: Target) -> Iterator[Finding]:
        given = next((name for name in _ARGUMENTS if name in fit.kwargs), None)
        if given is None:
            return
        choices = options_of(run.data)
        if choices and all(generator_function(data) or image_flow(data) for data in choices):
            # A queue is filled ahead for a generator too, but by one thread however many are asked for.
            useless = (_number(fit.kwargs.get("workers")) or 1) > 1
            if useless and all(generator_function(data) for data in choices):
                yield self._argument(fit, _IGNORED, "workers", Severity.WARNING, run)
        elif not target.legacy_keras and not fit.callee.endswith("_generator"):
            if choices and all(isinstance(data, Dataset | Produced | Items | Mapping) for data in choices):
                yield self._argument(fit, _NO_USE, given, Severity.INFO, run)
                return
            # Where no version is named, code that says workers to fit is most likely meant for Keras 2.
            known = target.stated
            yield self._argument(fit, _GONE, given, Severity.WARNING if known else Severity.INFO, run)

    def _argument(self, fit: Call, message: str, argument: str, severity: Severity, run: TrainingRun) -> Finding:
        return self.at(
            fit.place_of(argument), message.format(argument=argument), severity=severity, qualname=run.qualname
        )

    def _dataset(self, data: Instance, run: TrainingRun, fit: Call, program: Program) -> Iterator[Finding]:
        item = data.cls.find("__getitem__")
        if not isinstance(item, Function):
            return
        work = costly(list(calls_inside(program, item)))
        if work is None:
            return
        legacy = program.target.legacy_keras or fit.callee.endswith("_generator")
        said = self._in_fit(fit, program.target) if legacy else self._in_class(data, program)
        if said is None:
            return
        message, place, fix = said
        name = data.cls.name
        places = (item.location,)
        slow = work.callee.replace("()", "")
        yield self.at(
            place,
            message.format(name=name, work=slow),
            qualname=run.qualname if place is fit.location else name,
            related=(
                Related(work.location, "this makes a batch slow"),
                Related(run.location, "training draws from it"),
            ),
            fix=fix,
            places=places,
            names=(name,),
        )
        yield self.at(work, _SLOW.format(work=slow), severity=Severity.INFO, places=places, names=(name,))

    def _in_fit(self, fit: Call, target: Target) -> _Said | None:
        workers = fit.argument("workers")
        if workers is not None and _number(workers) != 1:
            return None
        fix = self._workers("add-argument", fit.location) if target.legacy_keras else _GENERATORS_OWN
        return _FIT, fit.place_of("workers"), fix

    def _in_class(self, data: Instance, program: Program) -> _Said | None:
        """Return what to say of the workers that reach Keras' constructor; None where there are enough."""
        own = data.cls.find("__init__")
        made = data.call
        if own is None:
            workers = made.argument("workers") if made is not None else Unknown()
            if made is None or (workers is not None and _number(workers) != 1):
                return None
            return _NOT_GIVEN, made.location, self._workers("add-argument", made.location)
        ups = [call for call in program.calls_to(f"{PYDATASET}.__init__") if call.receiver is data]
        if not ups:
            if not isinstance(own, Function):
                return None
            return _NO_SUPER, _header(data, own), self._workers("insert-statement", own.location)
        workers = ups[-1].argument("workers", 0)
        if workers is not None and _number(workers) != 1:
            return None
        passes_on = made is not None and isinstance(own, Function) and own.node.args.kwarg is not None
        if passes_on and made is not None:
            return _NOT_GIVEN, made.location, self._workers("add-argument", made.location)
        return _NO_WORKERS, ups[-1].location, self._workers("add-argument", ups[-1].location)

    def _workers(self, kind: str, place: Location) -> Fix:
        """Return the fix that asks for workers; that ``__getitem__`` may run in several threads is not known."""
        title = f"ask for {WORKERS} workers, if __getitem__ may run in several threads"
        if kind == "insert-statement":
            text = f"super().__init__(workers={WORKERS})"
            return self.change(kind, place, title, safety="unsafe", text=text, where="inside")
        return self.change(kind, place, title, safety="unsafe", name="workers", value=str(WORKERS))

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """More workers decide where they were tried, else the time of ``__getitem__`` and what all input costs."""
        tried = judge_repair("workers-4", evidence, unsettled=LOCKED)
        return tried or judge_python(finding, evidence, "PyDataset", "generator")


def _number(value: Value | None) -> int | None:
    number = value.value if isinstance(value, Const) else None
    return number if isinstance(number, int) else None


def _header(data: Instance, own: Function) -> Location:
    """Return the place from the head of the class to that of its constructor: the bodies are not at fault."""
    head = own.location if own.owner is None or own.owner is not data.cls else data.cls.location
    last = own.location
    return replace(head, end_line=last.line, end_column=last.column + len("def"))
