"""TFG601: a gradient step that Python drives op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.blockers import blockers
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import (
    adapts,
    contains,
    drives_environment,
    function_of_tape,
    judge_eager,
    learns_to_learn,
    simulates,
    span,
)
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.context import Activation, Loop
from tflint_gpu.program.questions import is_true
from tflint_gpu.program.values import Items, Produced, Value
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.views import Program, Step
    from tflint_gpu.trace.evidence import Evidence, Spot

#: With one of these on, the steps are eager because of the switch, which is run-eagerly-enabled's finding.
_SWITCHES = ("tf.config.run_functions_eagerly", "tf.config.experimental_run_functions_eagerly")


_CHOSEN = "a switch or the method may want this step eager, which is for you to say"


class EagerTrainStep(Check):
    """Reports gradient steps in a Python loop that no ``tf.function`` surrounds."""

    needles = ("GradientTape", "minimize(")
    experiments = ("tf-function",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a loop or step function."""
        if not program.target.on_tensorflow or any(
            is_true(call.argument("run_eagerly", 0)) for call in program.calls_to(*_SWITCHES)
        ):
            return
        for step, loop, function in steps_by_hand(program):
            shown = function or _function_of_apply(step)
            start = shown.function.location if shown else loop.location
            related = (Related(loop.location, "this loop drives it"),) if shown else ()
            severity = Severity.INFO if is_chosen(step, loop, program) else self.severity
            yield self.at(
                span(start, step.tape),
                "Python runs this training step op by op: the GPU waits for the host between its kernels. "
                "Put the whole step into a tf.function.",
                severity=severity,
                qualname=function.function.qualname if function else step.apply.qualname,
                related=related,
                fix=_CHOSEN if severity < self.severity else self._fix(step, function, program),
            )

    def _fix(self, step: Step, function: Activation | None, program: Program) -> Fix | str:
        if function is None:
            return "the step is no function of its own; move tape, gradients and update into one"
        if not contains(function.function.location, step.apply.location):
            return "tape and update stand in two functions"
        if not any(program.calls_to(f"{function.function.module.name}:{function.function.qualname}")):
            return "what the step is called with is not known"
        found = blockers(function.function, program)
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            return f"line {found[0].location.line} would not survive tracing: {found[0].reason}{more}"
        return self.change(
            "decorate",
            function.function.location,
            "decorate the step with @tf.function",
            safety="unsafe",
            decorator="{tensorflow.function}",
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the step as one graph, where it could be tried, else by the ops that Python ran one by one."""
        tried = evidence.experiment("tf-function")
        mine = tried is not None and any(_is_of(finding, spot) for spot in tried.spots)
        return (by_repair(tried) if mine else None) or judge_eager(evidence)


def _is_of(finding: Finding, spot: Spot) -> bool:
    """Say whether the function that was compiled is the finding's; one that is decorated begins further up."""
    named = spot.path == finding.location.path and spot.function == finding.qualname.rpartition(".")[2]
    return named or touches(spot, finding.location)


def steps_by_hand(program: Program) -> Iterator[tuple[Step, Loop, Activation | None]]:
    """Yield each step that Python drives op by op, its loop, and the function that holds its tape, if one does."""
    seen = set()
    for step in program.steps:
        if step.loop is None or not _by_hand(step) or _of_layer_alone(step, program):
            continue
        function = function_of_tape(step)
        start = function.function.location if function else step.loop.location
        if start not in seen:
            seen.add(start)
            yield step, step.loop, function


def is_chosen(step: Step, loop: Loop, program: Program) -> bool:
    """Say whether a step may well be eager on purpose: by the method, by a switch, or to train a picture."""
    compiled, adapting = program.once(_compiled_or_adapting)
    return (
        simulates(program)
        or step.apply.module.path in adapting
        or step.apply.location in compiled
        or drives_environment(loop)
        or adapts(loop)
        or _optimizes_inputs(step)
    )


def _compiled_or_adapting(program: Program) -> tuple[set[Location], set[str]]:
    """Return the updates that a graph function makes elsewhere, and the files with steps that learn to learn."""
    compiled = {step.apply.location for step in program.steps if "graph" in step.apply.context.regions}
    return compiled, {step.apply.module.path for step in program.steps if learns_to_learn(step)}


def _function_of_apply(step: Step) -> Activation | None:
    """Return the function called from the loop that applies what another took; None where the loop does itself."""
    for frame in step.apply.context:
        if frame is step.loop:
            return None
        if isinstance(frame, Activation):
            return frame
    return None


def _by_hand(step: Step) -> bool:
    context = step.apply.context
    traced = {"graph", "train-step", "test-step", "dataset"}
    once = step.loop is not None and step.loop.count is not None and step.loop.count <= 1
    # An optimizer that hands its gradients on to others has no tape: it is part of somebody's step, not one.
    taped = step.tape != step.apply.location or step.apply.callee.endswith(".minimize")
    return step.eager and taped and not once and not context.debug and not traced & set(context.regions)


def _of_layer_alone(step: Step, program: Program) -> bool:
    """Say whether the step is in a layer's method that nobody is seen to call: a model's own step may do so."""
    activations = step.apply.context.activations
    outermost = activations[-1].function if activations else None
    if outermost is None or outermost.owner is None or not outermost.owner.is_a("keras.layers.Layer"):
        return False
    return next(iter(program.calls_to(f"{outermost.module.name}:{outermost.qualname}")), None) is None


def _optimizes_inputs(step: Step) -> bool:
    """Say whether the optimizer is given variables made by hand, spelt out one by one (style transfer)."""
    pairs = step.apply.argument("grads_and_vars", 0)
    if isinstance(pairs, Produced) and pairs.callee == "builtins.zip" and len(pairs.call.args) == 2:
        variables = pairs.call.args[1]
        return _spells_out(variables, lambda item: item)
    return _spells_out(pairs, lambda pair: pair.items[-1] if isinstance(pair, Items) and pair.items else pair)


def _spells_out(values: Value | None, variable_of: Callable[[Value], Value]) -> bool:
    if not isinstance(values, Items) or not values.complete or not values.items:
        return False
    found = [variable_of(item) for item in values.items]
    return all(isinstance(value, Produced) and value.callee == "tf.Variable" for value in found)
