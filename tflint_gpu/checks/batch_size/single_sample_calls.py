"""TFG202: Keras' batch methods called sample by sample, or anew for every step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import arguments_of, differs_by_round, drives_environment, outermost_per_line
from tflint_gpu.checks.map_functions import reads_files
from tflint_gpu.checks.rows import one_row
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Related, Severity, Verdict
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import (
    Const,
    Dataset,
    Element,
    External,
    Generator,
    Items,
    Operation,
    Produced,
    Subscript,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model, literal
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Loop
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence, KerasCall

_METHODS = ("predict", "evaluate", "fit", "train_on_batch", "test_on_batch", "predict_on_batch", "__call__")
#: Literal loops shorter than this are a look at some samples, not a program's work.
FEW = 20
#: Epochs that a loop around `fit` makes before one `fit` would be simpler and faster.
SOME_EPOCHS = 5
#: Up to this many rounds model-rebuilt-in-loop says nothing of epochs fitted one by one.
FOLDS = 10
#: From this many literal rounds on a loop after training counts as work.
MANY = 100

_SINGLE = (
    "{method}() on one sample a round: Keras' own work around each call leaves the GPU idle. "
    "Collect the rows and call it once."
)
_SIMULATED = (
    "{method}() on one state a round: its set-up takes far longer than the GPU's work. "
    "Call model(x, training=False) instead."
)
_CALLED = "The model runs on one sample a round: kernels are tiny and the GPU idles between them. Batch the rows."
_IN_STEP = (
    "predict() in the training loop builds a new iterator in every step while the GPU waits. "
    "Call model(x, training=False) instead."
)
_AGAIN = (
    "predict() {rounds} times over builds a new iterator each time while the GPU waits. "
    "Call model(x, training=False) instead."
)
_PER_BATCH = "{method}() per batch builds a new iterator each time, and the GPU waits. Pass the dataset once."
_IN_LOADER = "{method}() inside the input pipeline runs a whole prediction loop per element, so batches come late."
_FED = (
    "train_on_batch() copies each batch over and waits for its result: the GPU idles in between. "
    "Use fit() or a tf.function over a dataset."
)
_FIT_AGAIN = "fit() per round starts a new iterator and new callbacks while the GPU waits. Use one fit()."

#: Arguments that only a fit of whole epochs has a use for.
_OF_EPOCHS = ("validation_data", "validation_split", "validation_steps", "steps_per_epoch", "initial_epoch")

_TRAINS = ("keras.Model.train_on_batch", "keras.Model.fit", "keras.optimizers.Optimizer.apply_gradients")
_LIVE = (
    *("builtins.input", "cv2.VideoCapture().read", "cv2.imshow", "cv2.waitKey", "pyaudio.PyAudio().open().read"),
    *("sounddevice.rec", "socket.socket().recv", "streamlit.write", "pygame.event.get"),
)
#: Names of functions that exist to warm a model up or to time it, and the clocks that they read.
_MEASURES = re.compile(r"warm_?up|bench|latency|throughput", re.IGNORECASE)
_CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "time.perf_counter_ns", "timeit.default_timer")


class SingleSampleCalls(Check):
    """``predict``, ``fit`` and kin in a loop, one sample or one step at a time."""

    needles = (".predict", ".evaluate", ".fit", "_on_batch", "expand_dims", "newaxis", "[None")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every batch method that a loop calls sample by sample, or that a training loop calls each step."""
        for method in _METHODS:
            for call in outermost_per_line(program.calls_to(f"keras.Model.{method}")):
                if not call.context.debug and not call.context.in_graph:
                    yield from self._called(call, method, program)

    def _called(self, call: Call, method: str, program: Program) -> Iterator[Finding]:
        if call.context.region in ("loader", "dataset") and method in ("predict", "evaluate", "predict_on_batch"):
            yield self.at(call, _IN_LOADER.format(method=method), kind="loader")
            return
        loops = call.context.loops
        if not loops or call.context.region in ("test-step", "train-step"):
            return
        loop = loops[0]
        if _lives(loop) or _over_models(call, loop) or _is_measured(call, loop):
            return
        said = self._single(call, method, loop) if _one_sample(call) else self._whole(call, method, loop, program)
        if said is not None:
            message, severity, kind = said
            related = (Related(loop.location, "this loop calls it in every round"),)
            yield self.at(call, message.format(method=method), severity=severity, related=related, kind=kind)

    def _single(self, call: Call, method: str, loop: Loop) -> tuple[str, Severity, str] | None:
        count = _rounds(loop)
        if count is not None and count < FEW:
            return None
        simulated = any(drives_environment(outer) for outer in call.context.all_loops)
        # What follows from the last prediction cannot be stacked: only many calls, or calls in training, weigh.
        apart = simulated or _indexed(call, loop) or call.context.region == "epoch-callback"
        certain = count >= MANY if count is not None else apart
        severity = Severity.WARNING if certain and not _seldom(call) else Severity.INFO
        if method == "__call__":
            drawn = isinstance(_drawn_from(loop), Dataset)
            return _CALLED, severity if drawn and not simulated else Severity.INFO, "single"
        if simulated and method in ("predict", "predict_on_batch"):
            return _SIMULATED, severity, "single"
        return _SINGLE, min(severity, Severity.INFO) if simulated else severity, "single"

    def _whole(self, call: Call, method: str, loop: Loop, program: Program) -> tuple[str, Severity, str] | None:
        if _seldom(call) and not _at_each_step(call, loop, program):
            return None
        few = (_rounds(loop) or FEW) < FEW
        if method == "predict":
            if _trains_each_round(loop, program):
                return _IN_STEP, Severity.WARNING, "step"
            rounds = math.prod(outer.count or 1 for outer in call.context.loops)
            trains = any(other.callee in _TRAINS for other in call.context.loops[-1].calls)
            if rounds >= MANY and not trains and not isinstance(_drawn_from(loop), Dataset):
                return _AGAIN.replace("{rounds}", str(rounds)), Severity.WARNING, "step"
            if isinstance(_drawn_from(loop), Dataset) and _element_of(call, loop) and not few:
                every_epoch = len(call.context.all_loops) > 1
                return _PER_BATCH, Severity.WARNING if every_epoch else Severity.INFO, "batch"
        if method == "evaluate" and isinstance(_drawn_from(loop), Dataset) and _element_of(call, loop):
            return _PER_BATCH, Severity.INFO, "batch"
        if method == "train_on_batch" and not isinstance(_drawn_from(loop), Dataset) and not _on_device(call):
            return _FED, Severity.INFO, "feed"
        if method == "fit" and _one_epoch_a_round(call, loop):
            return _FIT_AGAIN, Severity.INFO, "fit"
        return None

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The rows that each call got, and the share of the traced time that these calls took.

        Where a call is the training itself, its time says nothing of what another way of feeding would save; of
        `fit` what it takes beside its steps does.
        """
        kind = finding.detail.get("kind")
        made = [call for call in evidence.keras_calls if touches(call.spot, finding.location)]
        window = evidence.window
        if not made or window is None or not window.step_ms or kind == "feed":
            return None
        if kind == "fit":
            return _beside_steps(made, evidence)
        rows = max((call.rows for call in made if call.rows is not None), default=None)
        figures = [
            Measure("calls", sum(call.calls for call in made)),
            Measure("call_time", round(made[0].ms, 3), "ms"),
        ]
        if rows is not None:
            figures.append(Measure("rows", rows))
        if kind == "single" and rows is not None and rows > 1:
            return Judgement(Verdict.REFUTED, tuple(figures))
        # Steps may be seen as calls of Keras themselves, each shorter than a round of the loop around them.
        steps = window.step_ms * max(1, window.warmup_steps + window.steps)
        traced = max(steps, sum(call.calls * call.ms for call in evidence.keras_calls if not call.inside))
        share = min(1.0, sum(call.calls * call.ms for call in made) / traced)
        timed = [call.share for call in made if call.share is not None]
        if timed:
            share = min(1.0, sum(timed))
        return weigh(share, "calls_share", "trace: time in these calls, upper bound", *figures)


def _beside_steps(made: list[KerasCall], evidence: Evidence) -> Judgement | None:
    """Judge calls of `fit` by the share of a call that its steps leave: it sets up iterators and callbacks anew.

    None where the steps of a call are not known, and where it does more than training.
    """
    call, window = made[0], evidence.window
    if window is None or call.rows is None or not window.batch_size or call.calls < FEW or not call.ms:
        return None
    if len(made) > 1 or evidence.callbacks or "validation_ms" in evidence.facts:
        return None
    if (window.spot or call.spot) != call.spot:
        return None  # the steps that were measured are those of another line
    steps = math.ceil(call.rows / window.batch_size)
    left = max(0.0, 1.0 - steps * (window.mean_ms or window.step_ms) / call.ms)
    figures = (
        Measure("calls", call.calls),
        Measure("call_time", round(call.ms, 3), "ms"),
        Measure("rows", call.rows),
    )
    return weigh(left, "setup_share", "trace: time in fit beside its steps", *figures)


def _one_sample(call: Call) -> bool:
    return one_row(_data(call))


def _indexed(call: Call, loop: Loop) -> bool:
    """Say whether each round takes a sample of its own: an element of the loop's iterable, or one by index."""
    if isinstance(loop.iterable, Generator):
        return True
    return any(
        isinstance(part, Element)
        or (isinstance(part, Subscript) and not _is_fixed(part.key))
        or (isinstance(part, Tensor) and any(isinstance(parent, Unknown) for parent in part.parents[1:]))
        for part in walk(_data(call))
    )


def _is_fixed(key: Value) -> bool:
    """Say whether a key picks the same rows in every round: a literal, a new axis, a slice between literals."""
    if isinstance(key, Operation) and key.operator == "slice":
        return all(isinstance(bound, Const) for bound in key.operands)
    return isinstance(key, (Const, External, Items))


def _data(call: Call) -> Value | None:
    return call.args[0] if call.args else call.kwargs.get("x", call.kwargs.get("inputs"))


def _drawn_from(loop: Loop) -> Value | None:
    value = loop.iterable
    while isinstance(value, Produced) and value.callee in ("builtins.enumerate", "builtins.zip", "builtins.iter"):
        value = value.call.args[0] if value.call.args else None
    return value


def _rounds(loop: Loop) -> int | None:
    """Return the number of rounds where literals tell it, of a loop over ``ds.take(n)`` too."""
    source = _drawn_from(loop)
    if loop.count is None and isinstance(source, Dataset):
        taken = [literal(stage.call.argument("count")) for stage in source.stages if stage.op == "take"]
        return next((count for count in taken if isinstance(count, int) and count > 0), None)
    return loop.count


def _element_of(call: Call, loop: Loop) -> bool:
    """Say whether the call's data comes out of the loop's iterable."""
    data = _data(call)
    source = _drawn_from(loop)
    return any(isinstance(part, Element) and part.source in (source, loop.iterable) for part in walk(data)) or any(
        part is source for part in walk(data)
    )


def _on_device(call: Call) -> bool:
    return isinstance(_data(call), Tensor)


def _lives(loop: Loop) -> bool:
    """Say whether the loop follows the world in real time: a camera, a microphone, a person."""
    return any(call.callee in _LIVE for call in loop.calls)


def _is_measured(call: Call, loop: Loop) -> bool:
    """Say whether the call itself is what a warm-up or benchmark is about: the same input again and again."""
    named = _MEASURES.search(call.qualname.rpartition(".")[2] or "")
    return not _indexed(call, loop) and (bool(named) or any(other.callee in _CLOCKS for other in loop.calls))


def _over_models(call: Call, loop: Loop) -> bool:
    """Say whether every round has a model of its own: trials, folds, an ensemble."""
    receiver = call.receiver
    if isinstance(receiver, Model):
        return receiver.call is not None and loop in receiver.call.context.all_loops
    return any(isinstance(part, Element) and part.source is loop.iterable for part in walk(receiver))


def _seldom(call: Call) -> bool:
    periodic = call.context.periodic
    return periodic is not None and periodic.every != 1


def _at_each_step(call: Call, loop: Loop, program: Program) -> bool:
    """Say whether the branch that `call` is in holds the training step too: seldom is then the step itself."""
    branches = {id(guard) for guard in call.context.guards}
    steps = [step.apply for step in program.steps if step.loop is loop]
    return any(id(guard) in branches for apply in steps for guard in apply.context.guards)


def _trains_each_round(loop: Loop, program: Program) -> bool:
    """Say whether every round of the loop itself trains a step; a loop around such loops is one over epochs."""
    if any(step.loop is loop for step in program.steps):
        return True
    own = [call for call in loop.calls if call.callee in _TRAINS and call.context.all_loops[:1] == (loop,)]
    return any(
        call.callee != "keras.Model.fit"
        or (_short_fit(call) and not _over_models(call, loop) and not _is_epoch(call, loop))
        for call in own
    )


def _is_epoch(fit: Call, loop: Loop) -> bool:
    """Say whether each round of `fit` is an epoch: it validates, counts steps, or has the same data again."""
    if any(name in fit.kwargs for name in _OF_EPOCHS):
        return True
    data = [value for value in (_data(fit), fit.argument("y")) if value is not None]
    return bool(data) and not differs_by_round(data, loop)


def _short_fit(call: Call) -> bool:
    epochs = call.argument("epochs")
    return epochs is None or literal(epochs) == 1


def _one_epoch_a_round(call: Call, loop: Loop) -> bool:
    """Say whether the loop fits short pieces of data; of epochs over all of it, model-rebuilt-in-loop tells."""
    if not _short_fit(call) or call.context.guards or reads_files(loop.calls) is not None:
        return False
    if loop.count is not None and loop.count <= FOLDS:
        return loop.count >= SOME_EPOCHS
    return differs_by_round(arguments_of(call), loop)
