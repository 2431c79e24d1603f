"""TFG403: a loop that builds or compiles a model anew in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import arguments_of, differs_by_round, in_every_round
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import share_of_mean_step, weigh
from tflint_gpu.findings import Finding, Fix, Measure, Related, Severity
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, Produced
from tflint_gpu.program.views import Model
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Loop
    from tflint_gpu.program.views import Program, TrainingRun
    from tflint_gpu.trace.evidence import Evidence, TracedFunction

#: Loops of at most this many rounds are folds or trials: building is cheap against a whole training in each.
FOLDS = 10

#: Trainings of at most this many epochs are short: there the building weighs.
SHORT = 3

#: Rounds up to which compiling again is a stage of training, as in freezing and fine-tuning.
STAGES = 4

_TRAININGS = frozenset({"keras.Model.fit", "keras.Model.fit_generator", "keras.Model.train_on_batch"})
_USES = frozenset({"keras.Model.predict", "keras.Model.predict_on_batch", "keras.Model.__call__"})
#: Calls of a model in whose name its step functions are traced.
_RUNS = _TRAININGS | _USES | {"keras.Model.evaluate"}
_CLEARS = ("keras.backend.clear_session", "tf.compat.v1.reset_default_graph", "keras.backend.reset_uids")
_FRESH_PROCESS = (
    "multiprocessing.Process",
    "subprocess.run",
    "subprocess.Popen",
    "subprocess.check_call",
    "joblib.delayed",
    "multiprocessing.Pool().apply_async",
    "concurrent.futures.ProcessPoolExecutor().submit",
)


_BY_HAND = "which state a round may inherit from the one before is not in the code"


class ModelRebuiltInLoop(Check):
    """A model that is built, compiled or fitted for one epoch anew in every round of a loop."""

    needles: ClassVar[tuple[str, ...]] = (
        ".fit",
        "train_on_batch",
        ".compile",
        "GradientTape",
        "apply_gradients",
        "minimize",
        "load_model",
        "applications",
        "Model(",
        "Sequential",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield constructions, compiles and one-epoch fits in loops that nothing clears."""
        if program.target.on_tensorflow:
            yield from loudest((*self._built(program), *self._loaded(program)))
            yield from loudest((*self._compiled(program), *self._in_callbacks(program)))
            yield from loudest(self._fitted(program))

    def _built(self, program: Program) -> Iterator[Finding]:
        for run in program.runs:
            made = run.model.call if run.model else None
            if made is None or made.context.debug:
                continue
            context = run.call.context if run.call else run.context
            loop = next((loop for loop in context.all_loops if loop in made.context.all_loops), None)
            if loop is None or _clears(loop):
                continue
            if (severity := _weight(loop, run)) is not None:
                yield self._in_loop(
                    made,
                    loop,
                    "a new model in every round: its step is traced and compiled again while the GPU waits, and "
                    "old ones stay in memory; build it once, or call clear_session() first",
                    severity,
                    self._cleared(loop, program),
                )

    def _cleared(self, loop: Loop, program: Program) -> Fix | str:
        """Return the fix that forgets the models of the round before, where nothing else would be forgotten."""
        kept = [model.call for model in program.models if model.call is not None]
        kept += [call for call in program.calls if call.callee.startswith(("keras.optimizers.", "keras.layers."))]
        if any(loop not in call.context.all_loops for call in kept):
            return "models, layers or optimizers from outside the loop would be forgotten too"
        return self.change(
            "insert-statement",
            loop.location,
            "call clear_session() at the start of each round",
            safety="unsafe",
            text="{keras.backend.clear_session}()",
            where="inside",
        )

    def _loaded(self, program: Program) -> Iterator[Finding]:
        """One and the same model, read again in every round to predict with."""
        for model in program.models:
            made = model.call
            if made is None or model.kind not in ("loaded", "application") or made.context.debug:
                continue
            loop = next(iter(made.context.all_loops), None)
            if loop is None or loop.kind == "comprehension" or (loop.count is not None and loop.count <= STAGES):
                continue
            used = any(call.callee in _USES and call.receiver is model for call in loop.calls)
            if (
                used
                and in_every_round(made, loop)
                and not _clears(loop)
                and not differs_by_round(arguments_of(made), loop)
            ):
                yield self._in_loop(
                    made,
                    loop,
                    "the same model is loaded in every round: reading, building and tracing it takes seconds in "
                    "which the GPU waits; load it once before the loop",
                )

    def _compiled(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.Model.compile"):
            model = call.receiver
            if not isinstance(model, Model) or not model.trained or call.context.debug:
                continue
            if model.call is not None and model.call.context.all_loops:
                continue  # one of several models: each may be compiled once
            loop = next(iter(call.context.all_loops), None)
            if loop is None or not _trains(loop) or _clears(loop):
                continue
            if loop.count is None or loop.count > STAGES:
                yield self._in_loop(
                    call,
                    loop,
                    "compile() in every round drops the traced step, so Keras traces and compiles it again "
                    "while the GPU waits; compile once before the loop",
                    Severity.INFO if loop.count is not None and loop.count <= FOLDS else None,
                )

    def _in_callbacks(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("keras.Model", "keras.Sequential", "keras.Model.compile"):
            region, context = call.context.region, call.context
            if region not in ("epoch-callback", "batch-callback") or context.debug or context.all_guards:
                continue
            when = "batch" if region == "batch-callback" else "epoch"
            if call.callee.endswith(".compile"):
                message = (
                    f"compile() in every {when} drops the traced step, and Keras traces and compiles it again "
                    "while the GPU waits; set the optimizer's attributes instead"
                )
                yield self.at(call, message)
            else:
                message = (
                    f"a new model in every {when}: its predict is traced again each time while training waits; "
                    "build it once in __init__ or on_train_begin"
                )
                yield self.at(call, message, severity=None if when == "batch" else Severity.INFO)

    def _fitted(self, program: Program) -> Iterator[Finding]:
        """A loop of fits of one epoch over the same data pays the start and end of fit in every epoch."""
        for run in program.runs:
            call = run.call
            if run.kind != "fit" or call is None or call.context.debug or run.model is None:
                continue
            loop = next(iter(call.context.loops), None)
            if loop is None or (run.model.call and run.model.call.context.all_loops):
                continue
            if loop.count is not None and loop.count <= FOLDS:
                continue
            if (
                _epochs(run) == 1
                and "initial_epoch" not in call.kwargs
                and not differs_by_round(arguments_of(call), loop)
            ):
                yield self._in_loop(
                    call,
                    loop,
                    "fit() for one epoch in a loop sets up data, callbacks and metrics again in every round "
                    "while the GPU waits; one fit(epochs=n) with callbacks does the same",
                    Severity.INFO,
                )

    def _in_loop(
        self, call: Call, loop: Loop, message: str, severity: Severity | None = None, fix: Fix | str = _BY_HAND
    ) -> Finding:
        related = (Related(loop.location, "in this loop"),)
        places = tuple(other.location for other in loop.calls if other.callee in _RUNS)
        return self.at(call, message, severity=severity, related=related, fix=fix, places=places)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the tracing of step functions that were made more than once, and by the compile bucket."""
        again = [function for function in evidence.functions if function.traces >= 2 and function.trace_ms]
        places = (
            finding.location,
            *(related.location for related in finding.related),
            *finding.detail.get("places", ()),
        )
        again = [f for f in again if any(touches(spot, place) for spot in (f.spot, f.caller) for place in places)]
        compile_share = evidence.share("compile") or 0.0
        share = share_of_mean_step(sum(_tracing_ms(function, evidence) for function in again), evidence)
        if not again or share is None:
            return None
        traces = Measure("traces", float(sum(function.traces for function in again)))
        return weigh(max(share, compile_share), "tracing_share", "trace: tracing and compiling", traces)


def _tracing_ms(function: TracedFunction, evidence: Evidence) -> float:
    """Return what tracing a function again adds to a step; where only the whole is known, that over the window."""
    if function.retrace_ms is not None:
        return function.retrace_ms
    return (function.trace_ms or 0.0) / max(1, evidence.window.steps if evidence.window else 1)


def _clears(loop: Loop) -> bool:
    """Say whether every round starts clean: the session is cleared, or the work is done in a fresh process."""
    return any(call.callee in _CLEARS or call.callee in _FRESH_PROCESS for call in loop.calls)


def _trains(loop: Loop) -> bool:
    return any(call.callee in _TRAININGS for call in loop.calls)


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
    if run.kind == "fit":
        epochs = _epochs(run)
    else:
        # One batch for each model is short; a loop of batches within the round is a training of unknown length.
        single = run.kind == "train_on_batch" and run.call is not None and run.call.context.loops[:1] == (loop,)
        epochs = 1 if single else None
    few = loop.count is not None and loop.count <= FOLDS
    if epochs is not None and epochs <= SHORT:
        return Severity.INFO if few else Severity.WARNING
    if loop.count is not None:
        return None if few else Severity.INFO
    return Severity.INFO if epochs is not None and not _is_split(loop) else None


def _is_split(loop: Loop) -> bool:
    """Say whether the loop is a cross-validation: ``for train, test in folds.split(x)``."""
    return any(
        isinstance(part, Produced) and part.callee.endswith(".split") and part.callee.startswith("sklearn.")
        for part in walk(loop.iterable)
    )
