"""TFG403: a loop that builds or compiles a model anew in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Finding, Measure, Related, Severity
from tflint_gpu.program.values import Const, Produced, options_of, walk
from tflint_gpu.program.views import Model
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.context import Loop
    from tflint_gpu.program.values import Call
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence

#: Loops of at most this many rounds are folds or trials: building is cheap against a whole training in each.
FOLDS = 10

#: Trainings of at most this many epochs are short: there the building weighs.
SHORT = 3

#: Rounds up to which compiling again is a stage of training, as in freezing and fine-tuning.
STAGES = 4

_CLEARS = ("keras.backend.clear_session", "tf.compat.v1.reset_default_graph", "keras.backend.reset_uids")
_FRESH_PROCESS = ("multiprocessing.Process", "subprocess.run", "subprocess.Popen", "subprocess.check_call")


class ModelRebuiltInLoop(Check):
    """A model that is built, compiled or fitted for one epoch anew in every round of a loop."""

    needles: ClassVar[tuple[str, ...]] = (".fit", "train_on_batch", ".compile", "GradientTape")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield constructions, compiles and one-epoch fits in loops that nothing clears."""
        if program.target.on_tensorflow:
            yield from loudest((*self._built(program), *self._compiled(program), *self._in_callbacks(program)))
            yield from loudest(self._fitted(program))

    def _built(self, program: Program) -> Iterator[Finding]:
        for run in program.runs:
            model = run.model
            if run.call is None or model is None or model.call is None or model.call.context.debug:
                continue
            loop = next(
                (loop for loop in run.call.context.all_loops if loop in model.call.context.all_loops), None
            )
            if loop is None or _clears(loop):
                continue
            if (severity := _weight(loop, run)) is not None:
                yield self.at(
                    model.call,
                    "a new model in every round: its step is traced and compiled again while the GPU waits, and "
                    "old ones stay in memory; build it once, or call clear_session() first",
                    severity=severity,
                    related=(Related(loop.location, "in this loop"),),
                )

    def _compiled(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.Model.compile"):
            model, loops = call.receiver, call.context.all_loops
            if not isinstance(model, Model) or not model.trained or call.context.debug or not loops:
                continue
            built = model.call.context.all_loops if model.call else ()
            loop = next((loop for loop in loops if loop not in built), None)
            if loop is None or _trainings(loop) == 0 or _clears(loop):
                continue
            rounds = loop.count
            if rounds is not None and rounds <= STAGES:
                continue
            yield self.at(
                call,
                "compile() in every round drops the traced step, so Keras traces and compiles it again while the "
                "GPU waits; compile once before the loop",
                severity=Severity.INFO if rounds is not None and rounds <= FOLDS else None,
                related=(Related(loop.location, "in this loop"),),
            )

    def _in_callbacks(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.Model", "keras.Sequential"):
            region = call.context.region
            if (
                region in ("epoch-callback", "batch-callback")
                and not call.context.debug
                and not call.context.periodic
            ):
                when = "batch" if region == "batch-callback" else "epoch"
                yield self.at(
                    call,
                    f"a new model in every {when}: its predict is traced again each time while training waits; "
                    "build it once in __init__ or on_train_begin",
                    severity=None if when == "batch" else Severity.INFO,
                )

    def _fitted(self, program: Program) -> Iterator[Finding]:
        """A loop of fits of one epoch over the same data pays the start and end of fit in every epoch."""
        for run in program.runs:
            call = run.call
            if (
                run.kind != "fit"
                or call is None
                or call.context.debug
                or run.data is None
                or not call.context.loops
            ):
                continue
            loop = call.context.loops[0]
            built = run.model.call.context.all_loops if run.model and run.model.call else ()
            if loop in built or run.model is None or (loop.count is not None and loop.count <= FOLDS):
                continue
            if _epochs(run) == 1 and not _drawn_in(run, loop) and not _carries_on(call):
                yield self.at(
                    call,
                    "fit() for one epoch in a loop sets up data, callbacks and metrics again in every round while "
                    "the GPU waits; one fit(epochs=n) with callbacks does the same",
                    severity=Severity.INFO,
                    related=(Related(loop.location, "the loop"),),
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the tracing of step functions that were made more than once, and by the compile bucket."""
        again = [function for function in evidence.functions if function.traces >= 2 and function.trace_ms]
        places = (finding.location, *(related.location for related in finding.related))
        again = [f for f in again if any(touches(spot, place) for spot in (f.spot, f.caller) for place in places)]
        compile_share = evidence.share("compile") or 0.0
        spent = sum(function.trace_ms or 0.0 for function in again) / max(
            1, evidence.window.steps if evidence.window else 1
        )
        share = share_of_step(spent, evidence)
        if not again or share is None:
            return None
        traces = Measure("traces", float(sum(function.traces for function in again)))
        return weigh(min(1.0, share + compile_share), "tracing_share", "trace: tracing and compiling", traces)


def _clears(loop: Loop) -> bool:
    """Say whether every round starts clean: the session is cleared, or the work is done in a fresh process."""
    return any(call.callee in _CLEARS or call.callee in _FRESH_PROCESS for call in loop.calls)


def _trainings(loop: Loop) -> int:
    wanted = ("fit", "fit_generator", "train_on_batch")
    return sum(call.callee in tuple(f"keras.Model.{name}" for name in wanted) for call in loop.calls)


def _epochs(run: TrainingRun) -> int | None:
    """Return the epochs of a fit where they are literal; a fit without the argument runs one."""
    if run.call is None or run.kind != "fit":
        return None
    value = run.call.argument("epochs")
    if value is None:
        return 1
    return value.value if isinstance(value, Const) and isinstance(value.value, int) and not value.soft else None


def _weight(loop: Loop, run: TrainingRun) -> Severity | None:
    """Return how loud a rebuild in `loop` is: a few rounds of long training are no fault at all."""
    epochs = 1 if run.kind == "train_on_batch" else _epochs(run)
    short = epochs is not None and epochs <= SHORT
    if loop.count is not None and loop.count > FOLDS:
        return Severity.WARNING if short or epochs is None else Severity.INFO
    if loop.count is None and not short:
        return None if _is_split(loop) or epochs is None else Severity.INFO
    return Severity.WARNING if short else None


def _is_split(loop: Loop) -> bool:
    """Say whether the loop is a cross-validation: ``for train, test in folds.split(x)``."""
    return any(
        isinstance(part, Produced) and part.callee.endswith(".split") and part.callee.startswith("sklearn.")
        for part in walk(loop.iterable)
    )


def _drawn_in(run: TrainingRun, loop: Loop) -> bool:
    """Say whether the data differ from round to round, or may."""
    known = run.pipeline is not None or all(isinstance(v, (Produced, Const)) for v in options_of(run.data))
    return not known or any(getattr(part, "source", None) is loop.iterable for part in walk(run.data))


def _carries_on(call: Call) -> bool:
    """Say whether the loop counts epochs through ``initial_epoch``, or trains a stateful net between resets."""
    return "initial_epoch" in call.kwargs or call.constant("shuffle") is False
