"""TFG902: work that Keras waits for after every batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import in_every_round, is_tensor, step_loops
from tflint_gpu.checks.verdicts import by_experiment, share_of_step, weigh
from tflint_gpu.findings import Change, Finding, Fix, Measure, Related, Severity, Verdict
from tflint_gpu.program.api import BATCH_CALLBACKS
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Activation, Guard, Loop, Region
from tflint_gpu.program.questions import constant, is_true
from tflint_gpu.program.values import Const
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import CallbackCost, Evidence

#: Saving more often than every so many batches is felt; from the second number on nobody notices.
OFTEN = 100
SELDOM = 1000

_MODEL_WORK = {
    "keras.Model.predict": "predict",
    "keras.Model.evaluate": "evaluate",
    "keras.Model.predict_on_batch": "predict_on_batch",
    "keras.Model.test_on_batch": "test_on_batch",
    "keras.Model.fit": "fit",
    "keras.Model.get_weights": "copying all weights to the host",
    "keras.Model.__call__": "a forward pass",
}
_SAVES = {
    "keras.Model.save": "saving the model",
    "keras.Model.save_weights": "saving the weights",
    "keras.Model.export": "exporting the model",
    "tf.saved_model.save": "saving the model",
    "tf.train.Checkpoint.save": "saving a checkpoint",
    "tf.train.Checkpoint.write": "saving a checkpoint",
    "tf.train.CheckpointManager.save": "saving a checkpoint",
}
_FILES = {
    "builtins.open": "opening a file",
    "numpy.save": "writing an array",
    "numpy.savez": "writing an array",
    "numpy.savetxt": "writing an array",
    "pickle.dump": "writing a pickle",
    "json.dump": "writing JSON",
    "cv2.imwrite": "writing an image",
    "tf.io.write_file": "writing a file",
    "keras.utils.save_img": "writing an image",
    "matplotlib.pyplot.savefig": "drawing a figure",
    "matplotlib.pyplot.show": "drawing a figure",
    "matplotlib.pyplot.pause": "drawing a figure",
    "matplotlib.pyplot.draw": "drawing a figure",
    "matplotlib.pyplot.subplots": "drawing a figure",
    "matplotlib.pyplot.figure": "drawing a figure",
    "IPython.display.clear_output": "redrawing the output",
    "time.sleep": "sleeping",
}
_NETWORK = ("requests.", "urllib.request.", "boto3.", "smtplib.", "google.cloud.", "sklearn.metrics.")
#: What evidence calls the work that a trace does not carry out, where it is not the last two words of the call.
_MUTED = {
    "tf.saved_model.save": "tf.saved_model.save",
    "tf.train.Checkpoint.save": "tf.train.Checkpoint.save",
    "tf.train.Checkpoint.write": "tf.train.Checkpoint.write",
    "tf.train.CheckpointManager.save": "tf.train.CheckpointManager.save",
    "matplotlib.pyplot.savefig": "matplotlib savefig",
}
_CHECKPOINTS = ("keras.callbacks.ModelCheckpoint", "keras.callbacks.BackupAndRestore")


class PerBatchCallbackWork(Check):
    """Reports heavy work in batch callbacks and training loops, and callbacks set to work every batch."""

    needles = ("_batch_end", "_batch_begin", "save_freq", "TensorBoard", "save", "savefig")
    experiments = ("callbacks-off",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield work in callbacks, saving in loops, and the settings of Keras' own callbacks."""
        yield from self._callbacks(program)
        yield from self._loops(program)
        for call in program.calls_to(*_CHECKPOINTS):
            every = call.argument("save_freq")
            if isinstance(every, Const) and _is_count(every.value) and every.value < SELDOM:
                often = every.value < OFTEN and not every.soft
                yield self.at(
                    call,
                    f"This saves the model every {every.value} batches while the GPU waits for the file. "
                    'Use save_freq="epoch" or a larger number.',
                    severity=self.severity if often else Severity.INFO,
                    fix=_seldom(call, ("save_freq", '"epoch"')),
                    muted=_muted(call),
                )
        for call in program.calls_to("keras.callbacks.TensorBoard"):
            yield from self._board(call)

    def _callbacks(self, program: Program) -> Iterator[Finding]:
        recorded = not any(program.calls_to("tf.summary.record_if"))
        for call in program.calls_within(lambda context: "batch-callback" in context.regions):
            if (what := _heavy(call)) is None:
                continue
            scalar = call.callee == "tf.summary.scalar"
            if scalar and not recorded:
                continue
            steps = _way_to(call)
            if steps is None or call.context.debug:
                continue
            place = (steps and _called_from(steps[0], program)) or call
            related = () if place is call else (Related(call.location, "the work is here"),)
            yield self.at(
                place,
                f"Keras waits for this after every batch ({what}), and the GPU with it. "
                "Do it once an epoch, or every few hundred batches.",
                severity=Severity.INFO if scalar else self.severity,
                related=related,
                muted=_muted(call),
            )

    def _loops(self, program: Program) -> Iterator[Finding]:
        loops: list[Loop] = list(step_loops(program))
        loops += [run.loop for run in program.runs if run.kind == "train_on_batch" and run.loop is not None]
        for loop in dict.fromkeys(loops):
            for call in loop.calls:
                what = _SAVES.get(call.callee) or (
                    _FILES.get(call.callee) if call.callee.startswith("matplotlib.") else None
                )
                if what and in_every_round(call, loop) and not call.context.debug:
                    yield self.at(
                        call,
                        f"Every training step waits for this ({what}), and the GPU with it. "
                        "Do it once an epoch, or every few hundred steps.",
                        related=(Related(loop.location, "in every round of this loop"),),
                        muted=_muted(call),
                    )

    def _board(self, call: Call) -> Iterator[Finding]:
        histograms = call.constant("histogram_freq")
        frequency = call.constant("update_freq")
        every_batch = frequency == "batch" or (_is_count(frequency) and frequency < 10)
        if _is_count(histograms):
            loud = every_batch or is_true(call.argument("write_images")) or profiles_long(call)
            yield self.at(
                call,
                "TensorBoard copies all weights to the host for histograms"
                f"{' and more' if loud else ''}, and the GPU waits. Set histogram_freq=0, or do it seldom.",
                severity=self.severity if loud else Severity.INFO,
                fix=_seldom(call, ("histogram_freq", "0"), *[("update_freq", '"epoch"')] * every_batch),
                muted=_muted(call),
            )
        elif every_batch:
            yield self.at(
                call,
                "TensorBoard writes after every batch, and the GPU waits for it. "
                'Use update_freq="epoch" or a few hundred.',
                severity=Severity.INFO,
                fix=_seldom(call, ("update_freq", '"epoch"')),
                muted=_muted(call),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that the callback's batch methods take in a step, unless the trace muted the work.

        Where the run without callbacks gains less than all of them take, they ran while the device was busy.
        """
        if (muted := finding.detail.get("muted")) in evidence.muted:
            reason = f"the trace does not carry out {muted}: what it costs is in none of its figures"
            return Judgement(Verdict.UNMEASURED, reason=reason)
        cost = next((cost for cost in evidence.callbacks if _is_of(cost, finding)), None)
        share = share_of_step(cost.ms_per_step, evidence) if cost is not None else None
        if cost is None or share is None:
            return None
        figure = Measure("callback_time_per_step", round(cost.ms_per_step, 3), "ms")
        without = evidence.experiment("callbacks-off")
        tried = by_experiment(without)
        if without is None or (tried is None and share <= without.most_saved):
            return weigh(share, "callback_share", f"trace: time in {cost.name}", figure)
        if tried is None:
            reason = "without callbacks the steps are not that much shorter: the device works meanwhile"
            return Judgement(Verdict.UNMEASURED, (figure,), reason=reason)
        if tried.verdict is Verdict.REFUTED:
            return replace(tried, measures=(*tried.measures, figure))
        every = sum(each.ms_per_step for each in evidence.callbacks)
        part = min(share, without.saved_share * cost.ms_per_step / every) if every else 0.0
        # The share of the run that this callback accounts for stands in the place of the run's own.
        others = (measure for measure in tried.measures if measure.metric != "saved_share")
        return weigh(part, "saved_share", without.basis, *others, figure)


def _is_of(cost: CallbackCost, finding: Finding) -> bool:
    """Say whether `cost` is that of the callback at `finding`, or of the class that it stands in."""
    inside = cost.spot is not None and cost.spot.path == finding.location.path
    return touches(cost.spot, finding.location) or (inside and finding.qualname.split(".")[0] == cost.name)


def _muted(call: Call) -> str:
    """Return what evidence calls the work of `call` where it lists what the trace did not carry out."""
    if call.callee.startswith("tf.summary."):
        return "tf.summary.create_file_writer"
    if call.callee.startswith("keras.callbacks."):
        return call.callee.rpartition(".")[2]
    return _MUTED.get(call.callee, call.callee.removeprefix("keras."))


def profiles_long(call: Call) -> bool:
    """Say whether ``TensorBoard(profile_batch=(first, last))`` profiles more than a hundred batches."""
    value = call.argument("profile_batch")
    ends = constant(value)
    if ends is None and value is not None:
        items = getattr(value, "items", ())
        ends = tuple(constant(item) for item in items) if isinstance(items, tuple) else None
    if isinstance(ends, str) and "," in ends:
        ends = tuple(int(end) if end.strip().isdigit() else None for end in ends.split(","))
    if not isinstance(ends, (tuple, list)) or len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        return False
    return bool(ends[1] - ends[0] > 100)


def _seldom(call: Call, *settings: tuple[str, str]) -> Fix | str:
    """Return the fix that gives arguments of a callback other values, where they are literal."""
    if any(isinstance(value := call.argument(name), Const) and value.soft for name, _ in settings):
        return "a default that the user may override says how often"
    changes = tuple(
        Change("rewrite", call.place_of(name), (("literal", "yes"), ("text", value))) for name, value in settings
    )
    title = ", ".join(f"{name}={value}" for name, value in settings)
    return Fix("unsafe", f"say {title}", changes)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _heavy(call: Call) -> str | None:
    """Say in words what takes long about `call`; None where it does not, or where it is not known."""
    name = call.callee
    known = _MODEL_WORK.get(name) or _SAVES.get(name) or _FILES.get(name)
    if known:
        return known
    if name.startswith(_NETWORK):
        return name
    if name in ("tf.Variable.numpy", "tf.Tensor.numpy") and (
        name == "tf.Variable.numpy" or is_tensor(call.receiver)
    ):
        return "copying a tensor to the host"
    if name.startswith("tf.summary.") and name.rpartition(".")[2] in (
        "scalar",
        "histogram",
        "image",
        "audio",
        "text",
    ):
        return "writing a summary"
    return None


def _way_to(call: Call) -> list[Activation] | None:
    """Return the functions between the batch method and `call`, outermost first.

    None where a branch decides whether the call is reached, or code of another region makes it.
    """
    way: list[Activation] = []
    for frame in call.context:
        if isinstance(frame, Guard):
            return None
        if isinstance(frame, Region):
            return way[::-1] if frame.kind == "batch-callback" else None
        if isinstance(frame, Activation) and frame.function.name not in BATCH_CALLBACKS:
            way.append(frame)
    return None


def _called_from(step: Activation, program: Program) -> Call | None:
    """Return the call by which a batch method enters the function of `step`, None where it is no plain call."""
    function = step.function
    callers = program.calls_to(f"{function.module.name}:{function.qualname}")
    inside = (call for call in callers if call.context.region == "batch-callback" and _way_to(call) == [])
    return next(inside, None)
