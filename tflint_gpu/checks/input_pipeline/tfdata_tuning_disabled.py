"""TFG115: tf.data told not to tune itself, or held to numbers that do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input
from tflint_gpu.checks.map_functions import has_work
from tflint_gpu.checks.pipelines import PASSING, all_stages, batch_in_force, fused_batch, is_soft
from tflint_gpu.checks.rows import same
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Dataset, Produced
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

#: Options that switch off what tf.data does by itself, by the end of their dotted name, and what is lost.
_SWITCHES = {
    "autotune.enabled": "autotuning of threads and buffers",
    "experimental_optimization.autotune": "autotuning of threads and buffers",
    "apply_default_optimizations": "all of tf.data's own optimizations",
    "map_parallelization": "parallel maps",
    "map_and_batch_fusion": "maps fused with their batch",
    "inject_prefetch": "the prefetch at the end",
}

#: Options that count something, with the largest number that starves the input.
_COUNTS = {
    "private_threadpool_size": (1, "one thread for the whole pipeline"),
    "autotune.cpu_budget": (1, "one core for autotuning to share out"),
    "autotune_cpu_budget": (1, "one core for autotuning to share out"),
    "initial_parallelism": (1, "a single call at the start of every epoch"),
}

#: Buffers of whole batches up to this length are common and harmless.
FEW_BATCHES = 16

#: Parallel calls from here on are as good as what autotuning would find on most machines.
SOME_CALLS = 4

_OFF = "{option} is off, so tf.data gives up {loss} and batches come late for the GPU. Leave the option alone."
_FEW = "{option}={count} leaves {loss}: batches come late and the GPU waits. Leave it to AUTOTUNE."
_ZERO = "prefetch(0) buffers nothing: each batch is made while the GPU waits. Use prefetch(tf.data.AUTOTUNE)."
_DEEP = (
    "prefetch({count}) counts batches here, and keeps so many of them in host memory that the GPU waits for "
    "their filling. Use prefetch(tf.data.AUTOTUNE)."
)
_FIXED = (
    "num_parallel_calls={count} is fixed: on a larger host the other cores idle while the GPU waits. "
    "Use tf.data.AUTOTUNE."
)
_MEANT = re.compile(r"#.*\b(memory|ram|oom|benchmark\w*)\b", re.IGNORECASE)


class TfdataTuningDisabled(Check):
    """Options that keep tf.data from tuning a training pipeline, and buffers or thread counts that do the same."""

    needles: ClassVar[tuple[str, ...]] = ("Options", "options", "prefetch", "num_parallel_calls")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield options, buffers and counts of training pipelines; what a comment explains is left alone."""
        yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("builtins.setattr"):
            if isinstance(call.receiver, Produced) and not call.context.debug and not is_explained(call):
                yield from self._option(call, program)
        for pipeline in program.pipelines:
            if pipeline.role == "train":
                yield from self._buffers(pipeline)
                yield from self._calls(pipeline)

    def _option(self, call: Call, program: Program) -> Iterator[Finding]:
        name, value = constant(call.args[0]), call.args[1]
        used = [p for p in program.pipelines if any(held is value for held in p.dataset.options.values())]
        role = [pipeline for pipeline in used if pipeline.role == "train"]
        said = _said(str(name), value)
        if said is None or not role:
            return
        message, severity = said
        if is_soft(value):
            severity = Severity.INFO
        yield self.at(
            call,
            message,
            severity=severity,
            related=(Related(role[0].location, "training draws from it"),),
            fix=self._drop(call, value),
        )

    def _drop(self, call: Call, value: Value) -> Fix | str:
        if is_soft(value):
            return "a default that the user may override sets the option"
        if call.context.all_guards:
            return "a branch decides whether the option is set"
        return self.change("drop-statement", call.location, "leave the option alone")

    def _tune(self, call: Call, argument: str) -> Fix | str:
        if is_soft(call.argument(argument)):
            return "a default that the user may override says how many"
        return self.change(
            "rewrite", call.place_of(argument), f"{argument}=tf.data.AUTOTUNE", text="{tensorflow.data.AUTOTUNE}"
        )

    def _buffers(self, pipeline: Pipeline) -> Iterator[Finding]:
        for index, stage in pipeline.stages_of("prefetch"):
            if stage.conditional or stage.call.context.debug or is_explained(stage.call):
                continue
            size = stage.call.argument("buffer_size")
            count = literal(size)
            at_end = all(later.op in PASSING for later in pipeline.stages[index + 1 :])
            if count == 0 and at_end:
                # The runtime sees a prefetch at the end and adds none of its own (measured on TensorFlow 2.21: the
                # wait for a batch of 20 ms went from 2 to 24 ms), unless a fused map and batch stand before it.
                severity = Severity.INFO if fused_batch(_up_to(pipeline, index)) else Severity.WARNING
                yield self.at(stage.call, _ZERO, severity=severity, fix=self._tune(stage.call, "buffer_size"))
            elif _too_deep(size, pipeline, index):
                yield self.at(
                    stage.call,
                    _DEEP.format(count=constant(size)),
                    severity=Severity.INFO,
                    fix=self._tune(stage.call, "buffer_size"),
                )

    def _calls(self, pipeline: Pipeline) -> Iterator[Finding]:
        for stage, _ in all_stages(pipeline.dataset):
            count = literal(stage.call.argument("num_parallel_calls"))
            works = stage.op != "map" or has_work(stage) is True
            if isinstance(count, int) and count > 1 and works and not is_explained(stage.call):
                severity = Severity.HINT if count >= SOME_CALLS else Severity.INFO
                yield self.at(
                    stage.call.place_of("num_parallel_calls"),
                    _FIXED.format(count=count),
                    severity=severity,
                    qualname=stage.call.qualname,
                    fix=self._tune(stage.call, "num_parallel_calls"),
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """What all input costs is the bound of what tuning could give back."""
        return judge_input(evidence, 1.0)


def _said(name: str, value: Value) -> tuple[str, Severity] | None:
    """Return what to say of an option that is set to `value`; None where it tunes nothing away."""
    short = name.removeprefix("experimental_optimization.").removeprefix("experimental_threading.")
    for option, loss in _SWITCHES.items():
        if name == option or short == option or name.endswith(f".{option}"):
            off = isinstance(value, Const) and value.value is False
            return (_OFF.format(option=option, loss=loss), Severity.WARNING) if off else None
    for option, (most, loss) in _COUNTS.items():
        if name.endswith(option):
            count = constant(value)
            few = isinstance(count, int) and not isinstance(count, bool) and 0 < count <= most
            severity = Severity.INFO if option == "initial_parallelism" else Severity.WARNING
            return (_FEW.format(option=option, count=count, loss=loss), severity) if few else None
    return None


def _too_deep(size: Value | None, pipeline: Pipeline, index: int) -> bool:
    """Say whether a prefetch of whole batches is as long as a batch, or longer than anyone waits for."""
    batch = batch_in_force(_up_to(pipeline, index))
    if batch is None:
        return False
    count = constant(size)
    if not isinstance(count, int) or isinstance(count, bool) or count <= FEW_BATCHES:
        return False
    as_batch = count == batch[1] if isinstance(batch[1], int) else same(batch[1], size) if size else False
    return as_batch or count >= 4 * FEW_BATCHES


def _up_to(pipeline: Pipeline, index: int) -> Dataset:
    """Return the pipeline as far as before stage `index`."""
    return Dataset(pipeline.stages[:index], pipeline.dataset.options)


def is_explained(call: Call) -> bool:
    """Say whether a comment on the line of `call` or above says that it is meant, or all is a benchmark."""
    source, place = call.module.source, call.location
    start = next((cell.first - 1 for cell in source.cells if cell.number == place.cell), 0)
    near = source.lines[start + max(0, place.line - 2) : start + place.end_line]
    return "benchmark" in place.path.lower() or any(_MEANT.search(line) for line in near)
