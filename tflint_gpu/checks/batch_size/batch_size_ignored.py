"""TFG203: a batch_size that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import is_python_input
from tflint_gpu.checks.pipelines import batch_in_force
from tflint_gpu.checks.verdicts import with_larger_batch
from tflint_gpu.findings import Finding, Impact, Location, Measure, Related, Verdict
from tflint_gpu.program.questions import constant, options_of
from tflint_gpu.program.values import Const, Dataset, Parameter, Unknown, Value
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_CALLS = {
    "keras.Model.fit": ("x", "batch_size"),
    "keras.Model.evaluate": ("x", "batch_size"),
    "keras.Model.predict": ("x", "batch_size"),
}


class BatchSizeIgnored(Check):
    """``fit(dataset, batch_size=…)``: the data is batched already, or batches itself."""

    needles = ("batch_size",)
    experiments = ("batch-x2", "batch-x4")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every batch_size that is given together with data that batches itself."""
        for callee, (data, size) in _CALLS.items():
            for call in program.calls_to(callee):
                yield from self._ignored(call, call.argument(data), size)
        for call in program.calls_to("keras.Model.fit"):
            yield from self._ignored(call, call.argument("validation_data"), "validation_batch_size")

    def _ignored(self, call: Call, data: Value | None, argument: str) -> Iterator[Finding]:
        if not _certain(call.argument(argument)):
            return
        choices = options_of(data)
        if not choices or not all(isinstance(choice, Dataset) or is_python_input(choice) for choice in choices):
            return
        method = call.callee.rpartition(".")[2]
        source = "the dataset" if isinstance(choices[0], Dataset) else "the generator"
        force, place = _in_force(choices)
        related = (Related(place, "this batch is in force"),) if place else ()
        yield self.at(
            call.place_of(argument),
            f"{method}() ignores {argument} or refuses it: {source} batches itself{force}. "
            "Small batches leave the GPU idle: set it where the batches are made.",
            qualname=call.qualname,
            related=related,
            asked=constant(call.argument(argument)) if argument == "batch_size" else None,
            fit=call.location,
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Compare the rows of the steps that this fit made with those it was asked for; say what these gain."""
        window, asked = evidence.window, finding.detail.get("asked")
        place = finding.detail.get("fit", finding.location)
        if window is None or window.seen_as != "fit" or not touches(window.spot, place):
            return None
        if not isinstance(asked, int) or window.batch_size is None:
            return None
        figures = (Measure("rows_of_a_step", window.batch_size), Measure("rows_asked_for", asked))
        if window.batch_size == asked:
            return Judgement(Verdict.REFUTED, figures)
        larger = with_larger_batch(evidence, most=asked / window.batch_size)
        gain = Impact(round(larger.saved_share, 4), larger.basis) if larger and larger.gain else None
        return Judgement(Verdict.CONFIRMED, figures, gain)


def _certain(size: Value | None) -> bool:
    """Say whether a size is surely given: what may be None may be right."""
    choices = options_of(size)
    unsure = any(isinstance(choice, (Unknown, Parameter)) or _is_none(choice) for choice in choices)
    return bool(choices) and not unsure


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _in_force(choices: tuple[Value, ...]) -> tuple[str, Location | None]:
    if len(choices) != 1 or not isinstance(choices[0], Dataset):
        return "", None
    found = batch_in_force(choices[0])
    if found is None:
        return "", None
    stage, size = found
    number = size if isinstance(size, int) else constant(size)
    return (f" ({number} in force)" if number is not None else ""), stage.location
