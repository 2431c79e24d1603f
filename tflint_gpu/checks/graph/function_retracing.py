"""TFG603: a ``tf.function`` that is traced again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import changes_every_round, epoch_functions, is_memoised
from tflint_gpu.checks.scalars import why_no_tensor
from tflint_gpu.checks.shapes import varying_lengths
from tflint_gpu.checks.verdicts import share_of_mean_step, share_of_step, weigh
from tflint_gpu.findings import Change, Finding, Fix, Location, Measure, Related, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Guard, Loop
from tflint_gpu.program.values import Function, GraphFunction
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence, Spot, TracedFunction

#: A function made anew this often, in a loop over a few models or folds, is no loss worth a word.
FEW_ROUNDS = 4

#: Traces after warm-up from which on they are no accident: a last, shorter batch is one.
SEVERAL = 3
#: How evidence says that a function was traced because it was another object than before.
NEW_OBJECT = "a new tf.function object was made"

#: Options that settle the shapes or types a function is traced for.
_SHAPE_OPTIONS = ("input_signature", "reduce_retracing", "experimental_relax_shapes")


class FunctionRetracing(Check):
    """Reports graph functions made per call, and ones called with Python numbers or shapes that change."""

    needles = ("tf.function", "function(", "@function", "def_function")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a function and cause."""
        if not program.target.on_tensorflow or not program.functions:
            return
        epochs = epoch_functions(program)
        for function in program.functions:
            if function.made.context.debug:
                continue
            if (made := _made_anew(function)) is not None:
                loop, reused = made
                use = "used for that round alone" if reused else "never reused"
                yield self.at(
                    function.made,
                    f"A new tf.function is made in every round, so each is traced again and {use}: "
                    "the GPU waits for tracing. Make it once, outside.",
                    # One trace for the many steps of an epoch is seldom what the GPU waits for most.
                    severity=Severity.INFO if reused else None,
                    related=(Related(loop.location, "this loop makes it again and again"),),
                    fix=self._hoisted(function, loop),
                    name=_name_of(function),
                )
                continue
            yield from self._arguments(function, program, epoch=function.made in epochs)
            yield from self._shapes(function, program.target)

    def _hoisted(self, function: GraphFunction, loop: Loop) -> Fix | str:
        made = function.made
        if (made.qualname, made.location.path) != (loop.qualname, loop.location.path):
            return "a function that the loop calls makes it; make it once, and hand it over"
        return self.change("hoist", made.location, "make it before the loop", places=(loop.location,))

    def _arguments(self, function: GraphFunction, program: Program, *, epoch: bool) -> Iterator[Finding]:
        if "input_signature" in function.options:
            return
        for call in function.calls:
            keys = list(_changing_numbers(call))
            for key in keys:
                yield self.at(
                    _place_of(call, key),
                    "A Python number that changes with every call makes tf.function trace a new graph each time: "
                    "pass tf.constant(...) or a tensor.",
                    severity=Severity.INFO if epoch or _once_an_epoch(call, program) else self.severity,
                    qualname=call.qualname,
                    name=_name_of(function),
                    related=(Related(function.made.location, "the function that is traced again"),),
                    fix=self._as_tensors(function, call, keys, program),
                )
                break

    def _as_tensors(
        self, function: GraphFunction, call: Call, keys: list[int | str], program: Program
    ) -> Fix | str:
        if any((why := why_no_tensor(function, call, key, program)) for key in keys):
            return why
        text = (("text", "{tensorflow.constant}($)"),)
        changes = tuple(Change("rewrite", _place_of(call, key), text) for key in keys)
        return Fix("safe", "pass a tensor", changes)

    def _shapes(self, function: GraphFunction, target: Target) -> Iterator[Finding]:
        """Yield a function that is fed batches of changing length; compiled ones are xla-shape-churn's."""
        if function.jit or any(option in function.options for option in _SHAPE_OPTIONS):
            return
        for call in function.calls:
            stage = next((found for value in call.args if (found := varying_lengths(value)) is not None), None)
            if stage is None:
                continue
            yield self.at(
                function.made,
                "Each new batch length traces this function again: the GPU waits for tracing. "
                "Add reduce_retracing=True or pad to a fixed length.",
                name=_name_of(function),
                related=(Related(stage.location, "batches of changing length are made here"),),
                fix=self.change(
                    "add-option",
                    function.made.location,
                    f"pass {_relaxed(target)}=True",
                    name=_relaxed(target),
                    value="True",
                ),
            )
            return

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by how often the runtime traced the function after warm-up."""
        seen = [traced for traced in evidence.functions if _is(traced, finding)]
        if not seen:
            return None
        again = sum(traced.retraces_after_warmup for traced in seen)
        figures = _counts(seen)
        if not again:
            return Judgement(Verdict.REFUTED, figures)
        timed = _share(seen, evidence)
        building = evidence.share("compile")
        if timed is None and building is None:
            return Judgement(Verdict.CONFIRMED, figures)
        # Tracing is the Python half; what the runtime then does to each new graph is the bucket of the breakdown.
        # The bucket is exact where the window saw a trace; between rare ones only the whole run's figure is left.
        share = building or timed or 0.0
        return weigh(share, "tracing_share", "trace: tracing and building graphs", *figures)

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield functions that the runtime traced again and again, at their calls, with what changed."""
        for traced in evidence.functions:
            place, again = traced.caller or traced.spot, traced.retraces_after_warmup
            # Functions of new objects, such as those of one model after another, are another rule's matter.
            if place is None or again < SEVERAL or not traced.causes or NEW_OBJECT in traced.causes:
                continue
            share = _share([traced], evidence) or evidence.share("compile") or 0.0
            judged = weigh(share, "tracing_share", "trace: tracing and building graphs", *_counts([traced]))
            if judged.verdict is not Verdict.CONFIRMED:
                continue
            defined = (Related(_location(traced.spot), "this function is traced"),) if traced.spot else ()
            found = self.at(_location(place), _told(traced), related=defined)
            yield found.with_verdict(Verdict.OBSERVED, evidence=judged.measures, impact=judged.impact)


def _told(traced: TracedFunction) -> str:
    """Say how often and why, short enough for one line."""
    again = traced.retraces_after_warmup
    message = (
        f"{traced.name} was traced again {again} times after warm-up while the GPU waited: {traced.causes[0]}"
    )
    remedy = "; pad to few sizes, or pass tensors"
    room = 199 - len(remedy)
    return (message if len(message) <= room else message[: room - 2].rstrip() + " …") + remedy


def _location(spot: Spot) -> Location:
    return Location(spot.path, spot.line, cell=spot.cell)


def _counts(seen: list[TracedFunction]) -> tuple[Measure, ...]:
    return (
        Measure("traces", sum(traced.traces for traced in seen)),
        Measure("calls", sum(traced.calls for traced in seen)),
        Measure("retraces_after_warmup", sum(traced.retraces_after_warmup for traced in seen)),
    )


def _relaxed(target: Target) -> str:
    """Return what the option is called that makes a function general in its shapes."""
    return "reduce_retracing" if target.tensorflow >= (2, 9) else "experimental_relax_shapes"


def _place_of(call: Call, key: int | str) -> Location:
    return call.place_of(key) if isinstance(key, str) else call.place_of("", key)


def _once_an_epoch(call: Call, program: Program) -> bool:
    """Say whether each round of the loop around `call` trains an epoch: a trace for each is little beside that."""
    loop = next(iter(call.context.loops), None)
    if loop is None:
        return False
    fits = any(other.callee == "keras.Model.fit" for other in loop.calls)
    return fits or any(
        step.loop is not None and step.loop is not loop and loop in step.apply.context.all_loops
        for step in program.steps
    )


def _made_anew(function: GraphFunction) -> tuple[Loop, bool] | None:
    """Return the loop that makes the function again every round, and whether a round calls it more than once."""
    made = function.made.context
    if not function.calls or is_memoised(function.made):
        return None
    loop = None
    for frame in made:
        if isinstance(frame, Guard):
            return None
        if isinstance(frame, Loop):
            loop = frame
            break
    if loop is None or (loop.count is not None and loop.count <= FEW_ROUNDS):
        return None
    for call in function.calls:
        for frame in call.context:
            if frame is loop:
                break
            if isinstance(frame, Loop):
                return loop, True
    return loop, False


def _changing_numbers(call: Call) -> Iterator[int | str]:
    loop = next(iter(call.context.loops), None)
    if loop is None or call.context.in_graph or (loop.count is not None and loop.count <= FEW_ROUNDS):
        return
    if call.context.guards:
        return
    yield from (key for key, value in enumerate(call.args) if changes_every_round(value, loop))
    yield from (key for key, value in call.kwargs.items() if changes_every_round(value, loop))


def _name_of(function: GraphFunction) -> str:
    return function.function.name if isinstance(function.function, Function) else ""


def _is(traced: TracedFunction, finding: Finding) -> bool:
    if touches(traced.spot, finding.location) or touches(traced.caller, finding.location):
        return True
    name = finding.detail.get("name")
    near = traced.spot is not None and traced.spot.path == finding.location.path
    return bool(name) and near and traced.name.rpartition(".")[2] == name


def _share(seen: list[TracedFunction], evidence: Evidence) -> float | None:
    """Return the share of a step that tracing again takes; where it was not timed by the step, by the call."""
    known = [traced.retrace_ms for traced in seen if traced.retrace_ms is not None]
    if known:
        return share_of_mean_step(sum(known), evidence)
    timed = [traced for traced in seen if traced.trace_ms is not None and traced.traces and traced.calls]
    if not timed:
        return None
    each = [
        (traced.trace_ms or 0.0) / traced.traces * min(1.0, traced.retraces_after_warmup / traced.calls)
        for traced in timed
    ]
    return share_of_step(sum(each), evidence)
