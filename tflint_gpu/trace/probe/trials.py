"""What-if runs in the process of the baseline: blocks of steps with and without one change, in turns.

A block begins with a fresh iterator, lets a few steps pass and times the next ones, so that a machine that slows
down slows every arm, and no import, model or first trace is paid twice.
"""

import gc
import statistics
from time import monotonic

from . import noise
from .arms import NOT_HERE, Arm, unfit
from .clock import waited
from .eager_steps import CHANGE as COMPILED
from .experiments import EPOCH
from .loops import rows_of
from .memory import Room
from .model_state import jit_of, set_steps, set_workers, state_of, workers_of
from .places import identity
from .recipes import CHANGES as OF_INPUT
from .told import tell

#: Steps of a block that are let pass, and that are timed at most and at least.
SKIP, MOST, LEAST = 5, 20, 3
#: Seconds after which a block makes do with fewer steps, and turns that every arm gets: at most, and at least
#: before what is clear by then is left alone.
SECONDS, ROUNDS, ENOUGH = 4.0, 6, 3
#: Batches that are tried in turn with everything else, as multiples of the script's own.
USUAL = 4
#: Of the budget, the share that precision gets: it can only be changed in a run that makes its model anew.
ELSEWHERE = 1 / 3
#: Changes that belong to one kind of step only and go through the arguments of fit.
OF_FIT = ("cached-batch", "callbacks-off", "workers-4")

#: Arguments of fit that are no part of a step.
VALIDATION = (
    "validation_data",
    "validation_split",
    "validation_steps",
    "validation_freq",
    "validation_batch_size",
)


class BlockDone(BaseException):
    """Leaves a running fit at the end of a block; no `Exception`, so that no handler of the user's keeps it."""


class Trials:
    """Runs the arms of one job once its window is complete; every block is written down as it ends."""

    def __init__(self, run, changes, budget):
        self.run = run
        self.arms = [Arm(run, "")] + [Arm(run, change) for change in changes]
        self.budget = budget
        self.began = None
        self.longest = 0.0
        self.order = iter(())
        self.room = Room(run)
        self.forgot = False
        self.arm = None
        self.track = None
        self.first = 0
        self.block_began = None
        self.settled = False
        self.model_state = {}
        self.iterator = None

    def start(self, track, arguments):
        """Begin with `track`, if there is something to try and its kind of step can be switched.

        `arguments` are those of the running fit; a generator can be drawn from only once and is left alone.
        """
        if len(self.arms) < 2 or self.budget <= 0 or track.kind not in self._kinds():
            return False
        if track.kind == "fit" and (arguments is None or hasattr(arguments.get("x"), "__next__")):
            return False
        self.track = track
        if self.room.on_gpu and any(arm.change.startswith("mixed-") for arm in self.arms):
            self.budget *= 1 - ELSEWHERE
        self.began = monotonic()
        self.order = self._turns()
        return True

    def _kinds(self):
        """Return the kinds of step in whose turn arms can be tried; eager ones have but one change."""
        by_hand = ("optimizer", "gradient") if any(arm.change == COMPILED for arm in self.arms) else ()
        return ("fit", "dataset loop", *by_hand)

    @property
    def running(self):
        """Say whether the window is over and arms are being tried."""
        return self.began is not None

    def _turns(self):
        """Yield the arms in turns; the largest batches come last, for the time that the others leave."""
        changed = self.arms[1:]
        yield from self._turns_of([arm for arm in changed if arm.factor_asked <= USUAL])
        yield from self._turns_of([arm for arm in changed if arm.factor_asked > USUAL])

    def _turns_of(self, changed):
        """Yield `changed` in turns, the baseline in each; what is clear after a few turns gets no more."""
        baseline = self.arms[0]
        for turn in range(ROUNDS):
            if turn >= ENOUGH:
                changed = [arm for arm in changed if not noise.is_settled(baseline.means, arm.means)]
            changed = [arm for arm in changed if not arm.over]
            if not changed:
                return
            yield baseline
            # No arm comes after the same one every time: what a machine does now and then hits all of them.
            first = turn % len(changed)
            yield from changed if turn == 0 else changed[first:] + changed[:first]

    def next_arm(self):
        """Return the arm whose turn it is, None when all turns or the budget are used up."""
        for arm in self.order:
            left = self.budget - (monotonic() - self.began)
            if self.longest > left:
                return None
            arm.problem = arm.problem or unfit(arm, self.arms, self.room)
            if not arm.over:
                self.arm = arm
                self.first = len(self.track.steps)
                self.block_began = monotonic()
                self.settled = False
                self.forgot = self.room.begin()
                self._tell(left)
                return arm
        return None

    def _tell(self, left):
        """Write down what is being tried, for the parent to show."""
        trying = {"change": self.arm.change, "run": len(self.arm.means) + 1, "left": left}
        tell(self.run.job["doing"], trying)

    def block_full(self):
        """Say whether the block has its steps; then they are kept and written down."""
        if not self.settled and len(self.track.steps) >= self.first + SKIP:
            self.settled = True
            self.first = len(self.track.steps) - SKIP
            self.run.settle()
            self.run.eager_steps.count()
            return False
        times = [ms for ms, _ in self.track.steps[self.first + SKIP :]]
        spent = monotonic() - self.block_began
        if len(times) < MOST and not (len(times) >= LEAST and spent > SECONDS):
            return False
        # The host may have run ahead of the device: what is left to do belongs to these steps.
        late = waited(self.run.settle) / len(times)
        if self.arm.change == COMPILED:
            self.arm.problem = self.run.eager_steps.unsettled(len(times))
            self.arm.spots = self.run.eager_steps.spots()
        if not self.arm.problem:
            self._keep([ms + late for ms in times])
        return True

    def _keep(self, times):
        arm = self.arm
        block = [ms / arm.factor for ms in times]
        arm.times += block
        # The mean, not the median: workers hand on batches in bursts, and most steps of a burst wait for none.
        arm.means.append(statistics.mean(block))
        arm.note_peak(self.room.peak(), self.forgot)
        self.longest = max(self.longest, monotonic() - self.block_began)
        self.write()

    def write(self):
        """Write what is known of the arms."""
        kept = ("means", "times", "problem", "error", "memory", "spots")
        found = {arm.change: {name: getattr(arm, name) for name in kept} for arm in self.arms}
        found[""].update(rows=self.track.batch_size, spent=monotonic() - self.began)
        tell(self.run.job["arms_report"], found)

    def fit(self, original, model, arguments):
        """Try the arms on a call of fit that was just left; never returns."""
        arguments = {key: value for key, value in arguments.items() if key not in VALIDATION + ("self",)}
        arguments["epochs"] = (arguments.get("initial_epoch") or 0) + 100000
        prepared = {}
        # Every arm differs from the baseline in one thing, whatever arm ran before it.
        self.model_state = state_of(model, arguments.get("x"), self.run.tensorflow)
        end_inputs()
        while self.next_arm() is not None:
            arm = self.arm
            try:
                if arm not in prepared:
                    prepared[arm] = self._prepare_fit(arm, model, dict(arguments))
                self._enter_state(arm, model, arguments.get("x"))
                original(model, **prepared[arm])
                arm.problem = "" if arm.means else "the input ended before a block was full"
            except BlockDone:
                pass
            except Exception as problem:
                if not arm.change:
                    break
                arm.error = {"type": type(problem).__name__, "text": str(problem)}
            self.run.clock.drop(self.track)
            arm.state["train_function"] = model.train_function
            end_inputs()
        self.run.leave()

    def _prepare_fit(self, arm, model, arguments):
        base = self.model_state
        arm.state = dict(base)
        if not arm.change:
            return arguments
        if arm.experiment.factor > 1:
            self._rebatch(arm, arguments)
        elif arm.change.startswith("xla"):
            arm.state.update(jit=arm.change == "xla", train_function=None)
            arm.experiment.applied = base["jit"] != arm.state["jit"] and not model.run_eagerly
        elif arm.change.startswith("steps-per-execution-"):
            arm.state.update(steps=8, train_function=None)
            arm.experiment.applied = base["steps"] == 1 and not model.run_eagerly
        elif arm.change == "run-eagerly-off":
            arm.experiment.applied = base["eager"] or base["all_eager"]
            arm.state.update(eager=False, all_eager=False, train_function=None)
        elif arm.change in OF_FIT + OF_INPUT:
            arguments = arm.experiment.fit_arguments(model, arguments)
            arm.state["workers"] = workers_of(arguments.get("x"))
            if arm.change == "cache":
                arguments["steps_per_epoch"] = arguments.get("steps_per_epoch") or EPOCH
        if not arm.experiment.applied:
            arm.problem = NOT_HERE
            raise BlockDone
        return arguments

    def _rebatch(self, arm, arguments):
        given, factor = arguments.get("x"), arm.experiment.factor
        if self.run.dataset_class is not None and isinstance(given, self.run.dataset_class):
            larger = self.larger(given, factor)
            if larger is not None:
                arguments["x"] = larger
                arguments["steps_per_epoch"] = arguments.get("steps_per_epoch") or EPOCH
                arm.experiment.applied = True
        elif (rows_of(given) or 0) >= (self.track.batch_size or 0) * factor:
            arm.experiment.fit_arguments(None, arguments)
        arm.factor = float(factor)

    def larger(self, dataset, factor):
        """Return `dataset` with batches `factor` times as large, None where it cannot be had."""
        rows = self.track.batch_size
        if not rows or not hasattr(dataset, "rebatch"):
            return None
        return dataset.repeat().rebatch(rows * factor, drop_remainder=True).prefetch(2)

    def _enter_state(self, arm, model, given):
        """Give the model the arm's own compiled step, and the input the arm's workers."""
        set_workers(given, arm.state["workers"])
        self.run.tensorflow.config.run_functions_eagerly(arm.state["all_eager"])
        model.run_eagerly = arm.state["eager"]
        model.jit_compile = arm.state["jit"]
        if jit_of(model) != arm.state["jit"]:
            # A layer that XLA cannot compile keeps the whole model from it.
            arm.problem = "a layer of the model does not support XLA"
            raise BlockDone
        set_steps(model, arm.state["steps"])
        model.train_function = arm.state["train_function"]

    def failed(self, problem):
        """Note that the program ended under the change that was being tried, with an exception or without."""
        if self.arm is not None and self.arm.change and (problem or not self.arm.means):
            self.arm.error = problem
            self.arm.problem = "the program ended under it"
        self.write()

    def refused(self, problem):
        """Note that the step cannot be run under the change that is being tried; the program goes on without."""
        self.arm.error = {"type": type(problem).__name__, "text": str(problem)}
        self.write()

    def draw(self, iterator):
        """Return the next element of the loop over a dataset, as the arm whose turn it is has it."""
        source = iterator._tflint_gpu_source
        if self.arm is None:
            disown(iterator)
        if self._is_due():
            self._next_loop_arm(source)
        try:
            return self._element()
        except StopIteration:
            self.iterator = self._source_of(self.arm, source)
            return self._element()

    def _is_due(self):
        """Say whether the loop goes on with another arm."""
        return self.arm is None or self.arm.over or self.block_full()

    def updated(self, kind, spot):
        """Note an eager update; between two of those that are the steps of the job arms change."""
        if self.running and (kind, spot) == (self.track.kind, identity(self.track.spot)):
            self._change_by_hand()

    def stepped(self, spot):
        """Note that a compiled step was run, whose update on the line of `spot` nobody saw."""
        if self.running and self.track.kind != "dataset loop" and spot == identity(self.track.spot):
            self.run.clock.tick(self.track)
            self._change_by_hand()

    def _change_by_hand(self):
        if self._is_due():
            self._next_loop_arm(None)

    def _element(self):
        if self.arm.change != "cached-batch":
            return next(self.iterator)
        state = self.arm.state
        if "element" not in state:
            state["element"] = next(self.iterator)
            # An idle iterator would go on filling its buffers.
            self.iterator = iter(())
        return state["element"]

    def _next_loop_arm(self, source):
        """Go on with the next arm that applies to a loop over `source`, which is None without a dataset."""
        self.iterator = None
        end_inputs()
        while True:
            arm = self.next_arm()
            self.run.eager_steps.put_back()
            if arm is None:
                self.run.leave()
            arm.problem = self._enter_loop(arm, source)
            if not arm.problem:
                return

    def _enter_loop(self, arm, source):
        """Have the loop run as `arm` wants it; return why it cannot, "" where it does."""
        reason = self.run.eager_steps.compile() if arm.change == COMPILED else ""
        if reason:
            return reason
        if source is None:
            return "" if arm.change in ("", COMPILED) else NOT_HERE
        self.iterator = self._source_of(arm, source)
        return NOT_HERE if self.iterator is None else ""

    def _source_of(self, arm, source):
        self.run.keras.depth += 1
        try:
            if arm.experiment.factor > 1:
                source = self.larger(source, arm.experiment.factor)
                arm.factor = float(arm.experiment.factor)
            elif arm.change in OF_INPUT:
                source = self._changed(arm, source)
            elif arm.change not in ("", "cached-batch", COMPILED):
                return None
            if "element" in arm.state:
                return iter(())
            return None if source is None else iter(source)
        finally:
            self.run.keras.depth -= 1

    def _changed(self, arm, source):
        """Return the loop's dataset with the arm's change, made once; None where it changes nothing."""
        if "source" not in arm.state:
            made = arm.experiment.dataset(source)
            arm.state["source"] = made if arm.experiment.applied else None
        return arm.state["source"]


def end_inputs():
    """Destroy the iterators that nobody draws from any more, and wait for what their threads are at.

    The frames of an ended fit refer to each other: left to the collector, their iterator would go on filling its
    buffers beside later blocks, and be destroyed in the midst of one, which waits for its last elements.
    """
    gc.collect()


def disown(iterator):
    """Take from the loop's own iterator what it draws from: from now on it is given the elements of others."""
    for name in ("_iterator_resource", "_deleter", "_iterators"):
        iterator.__dict__.pop(name, None)
