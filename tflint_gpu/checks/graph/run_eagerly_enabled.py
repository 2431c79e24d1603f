"""TFG602: a switch that makes compiled training run op by op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.blockers import blockers_inside, blockers_under_keras
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import judge_eager
from tflint_gpu.checks.pipelines import all_stages
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Finding, Fix, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Function, Value
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.checks.blockers import Blocker
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_SWITCHES = ("tf.config.run_functions_eagerly", "tf.config.experimental_run_functions_eagerly")
_DATA_DEBUG = "tf.data.experimental.enable_debug_mode"
_COMPILE = "keras.Model.compile"
_ASSIGNED = "builtins.setattr"


class RunEagerlyEnabled(Check):
    """Reports ``run_eagerly=True`` and the global switches that do the same."""

    needles = ("run_eagerly", "run_functions_eagerly", "enable_debug_mode")
    experiments = ("run-eagerly-off",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every switch that is on, unless a debug flag guards it or the code sets it back."""
        if not program.target.on_tensorflow:
            return
        for call in program.calls_to(_COMPILE):
            value = call.argument("run_eagerly")
            if isinstance(value, Const) and value.value is True and not call.context.debug:
                yield self.at(
                    call.place_of("run_eagerly"),
                    "run_eagerly=True makes fit run every op from Python and drops XLA: "
                    "the GPU waits between kernels. Remove it.",
                    severity=Severity.INFO if value.soft else self.severity,
                    qualname=call.qualname,
                    fix=self._compiled(call, value, program),
                    kind="step",
                )
        for call in program.calls_to(_ASSIGNED, *_SWITCHES):
            value = _switched_to(call)
            if not isinstance(value, Const) or value.value is not True or call.context.debug:
                continue
            if _set_back(call, program):
                continue
            yield self.at(
                call,
                "This makes every tf.function and fit run op by op from Python: the GPU waits between kernels. "
                "Remove it outside debugging.",
                severity=self._severity(program, soft=value.soft or not _reaches_training(call, program)),
                fix=self._removed(call, value, program),
                kind="step",
            )
        for call in program.calls_to(_DATA_DEBUG):
            if not call.context.debug:
                yield self.at(
                    call,
                    "tf.data's debug mode runs every transformation eagerly and one at a time: "
                    "the GPU waits for input. Remove it.",
                    severity=self._severity(program, soft=False),
                    fix=self._without_debug_mode(call, program),
                    kind="data",
                )

    def _compiled(self, call: Call, value: Const, program: Program) -> Fix | str:
        """Return the fix for the argument of ``compile``."""
        why = _why_kept(call, value) or _needs_python(call.receiver, program)
        return why or self.change("drop-arguments", call.location, "drop run_eagerly=True", names="run_eagerly")

    def _removed(self, call: Call, value: Const, program: Program) -> Fix | str:
        """Return the fix for a switch; the global one is for every model and graph function."""
        models = (
            [call.receiver] if call.callee == _ASSIGNED else [model for model in program.models if model.trained]
        )
        needs = (_needs_python(model, program) for model in models)
        why = _why_kept(call, value) or next(filter(None, needs), "")
        if not why and not models:
            why = "which code the switch is for is not known"
        return why or self.change("drop-statement", call.location, "remove the line")

    def _without_debug_mode(self, call: Call, program: Program) -> Fix | str:
        functions = [
            stage.function
            for pipeline in program.pipelines
            for stage, _ in all_stages(pipeline.dataset)
            if stage.function is not None
        ]
        known = [function for function in functions if isinstance(function, Function)]
        if len(known) < len(functions):
            return "not all functions of the pipeline are known"
        found = [blocker for function in known for blocker in blockers_inside(function, program)]
        why = _why_kept(call, None) or (_told(found[0]) if found else "")
        return why or self.change("drop-statement", call.location, "remove the line")

    def _severity(self, program: Program, *, soft: bool) -> Severity:
        """Lower the voice where an option may say otherwise, or a script that only converts a model has it on."""
        if soft:
            return Severity.INFO
        return self.severity if program.trains() else Severity.WARNING

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run without the switch, else by the ops that Python ran one by one; not so tf.data's."""
        if finding.detail.get("kind") != "step":
            return None
        return by_repair(evidence.experiment("run-eagerly-off")) or judge_eager(evidence)


def _why_kept(call: Call, value: Const | None) -> str:
    """Return why the switch itself is to be left alone, "" where it may go."""
    if value is not None and value.soft:
        return "a default that the user may override switches it on"
    return "a branch decides whether it is switched on" if call.context.all_guards else ""


def _needs_python(model: object, program: Program) -> str:
    """Return why `model` has to run op by op, "" where it has not."""
    if not isinstance(model, Model):
        return "the model is not known"
    found = blockers_under_keras(program, model)
    return _told(found[0]) if found else ""


def _told(blocker: Blocker) -> str:
    return f"line {blocker.location.line} needs Python: {blocker.reason}"


def _set_back(call: Call, program: Program) -> bool:
    """Say whether the same function sets the switch off again further down."""
    return any(
        other.qualname == call.qualname
        and other.location.path == call.location.path
        and _position(other) > _position(call)
        and constant(_switched_to(other)) is False
        for other in program.calls_to(_ASSIGNED, *_SWITCHES)
    )


def _reaches_training(call: Call, program: Program) -> bool:
    """Say whether the script that makes `call` may train: one beside the training scripts that nobody imports."""
    path = _script_of(call.location.path, call.context)
    runs = {_script_of(run.location.path, run.context) for run in program.runs}
    if not runs or path in runs:
        return True
    stem = path.rpartition("/")[2].partition(".")[0]
    return any(stem in module.source.text for module in program.modules if module.path != path)


def _script_of(path: str, context: Context) -> str:
    """Return the file whose own code leads to what happens in `context`; `path` where no call does."""
    sites = [frame.site.path for frame in context.activations if frame.site is not None]
    return sites[-1] if sites else path


def _switched_to(call: Call) -> Value | None:
    """Return what a call of a switch, or an assignment to ``run_eagerly``, sets it to."""
    if call.callee != _ASSIGNED:
        return call.argument("run_eagerly", 0)
    return call.args[1] if constant(call.args[0]) == "run_eagerly" else None


def _position(call: Call) -> tuple[int, int]:
    return (call.location.cell or 0, call.location.line)
