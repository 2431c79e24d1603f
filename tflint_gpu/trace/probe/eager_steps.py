"""The user's functions that are one eager step: found by their frames, run as a ``tf.function``, and put back.

A function's code is exchanged and not its name: whoever holds the function, in a module, a class, a closure or a
variable of a running loop, calls the compiled one from then on, and putting it back is one assignment.
"""

import gc
import inspect
import sys
import types

from .arms import NOT_HERE
from .clock import WARMUP
from .places import identity

#: The change that this module makes.
CHANGE = "tf-function"
#: Sightings of an update that tell the frame of a step from that of its loop.
SIGHTINGS = 4
#: Functions that run piece by piece are none that TensorFlow can trace.
PIECEWISE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

LOOSE = "no function of yours holds the whole step; move tape, gradients and update into one"
GONE = "the function of the step is made anew in every step"
SWITCHED = "run_functions_eagerly is on, which has every tf.function run op by op"


class Candidate:
    """The code of a function that took gradients and made an update: where that is, and the codes around it."""

    def __init__(self, kind, update, around):
        self.kind = kind
        self.update = update
        self.around = around


class EagerSteps:
    """Finds the functions of eager steps while the run warms up, and compiles them for a what-if arm."""

    def __init__(self, run, wanted):
        self.run = run
        self.wanted = wanted
        self.candidates = {}
        self.loops = set()
        self.gradient = []
        self.last = {}
        self.seen = {}
        self.compiled = []
        self.counted = 0

    @property
    def looking(self):
        """Say whether frames are still looked at, which keeps what is in them alive."""
        return self.wanted and self.run.clock.phase == WARMUP

    def rest(self):
        """Let go of all frames: their steps are over."""
        self.gradient, self.last = [], {}

    def drew(self):
        """Note a draw from a dataset: a function that is running now holds a loop, and is no step of it."""
        if self.looking:
            self.loops.update(frame.f_code for frame in self._frames())

    def saw(self, kind, spot):
        """Note an eager update of `kind` (``gradient``, ``optimizer``) on the line of `spot`."""
        if not self.looking or self.run.in_other_thread():
            # What replicas do in threads of their own is compiled through their strategy, or not at all.
            return
        frames = self._frames()
        if kind == "gradient":
            self.gradient = frames
        key = (kind, identity(spot))
        at = next((at for at, frame in enumerate(frames) if any(frame is other for other in self.gradient)), None)
        if at is None or self.seen.get(key, 0) >= SIGHTINGS:
            return
        self.seen[key] = self.seen.get(key, 0) + 1
        frame, before = frames[at], self.last.get(key)
        self.last[key] = frame
        if before is frame:
            # One call that makes update after update is the loop itself.
            self.loops.add(frame.f_code)
        elif before is not None and (kind == "optimizer" or frame.f_code not in self.candidates):
            around = {outer.f_code for outer in frames[at + 1 :]}
            self.candidates[frame.f_code] = Candidate(kind, identity(spot), around)

    def _frames(self):
        """Return the running frames of the user's, the innermost first."""
        frame, found = sys._getframe(2), []
        while frame is not None:
            if self.run.places.is_project(frame.f_code.co_filename):
                found.append(frame)
            frame = frame.f_back
        return found

    def compile(self):
        """Have the functions of the step run as graphs from now on; return why that cannot be, or ""."""
        if self.run.tensorflow.config.functions_run_eagerly():
            return SWITCHED
        codes = self._codes()
        if not codes:
            return LOOSE if self.seen else NOT_HERE
        if not self.compiled:
            self.compiled = [
                Compiled(self, function, self.candidates[function.__code__].update)
                for code in codes
                for function in gc.get_referrers(code)
                if isinstance(function, types.FunctionType) and function.__code__ is code
            ]
        for each in self.compiled:
            each.enter()
        return "" if self.compiled else GONE

    def _codes(self):
        """Return the codes that hold whole steps, the outermost of those within one another."""
        kind = "optimizer" if any(kind == "optimizer" for kind, _ in self.seen) else "gradient"
        whole = {
            code
            for code, each in self.candidates.items()
            if each.kind == kind
            and code not in self.loops
            and not code.co_name.startswith("<")
            and not code.co_flags & PIECEWISE
        }
        return [code for code in whole if not whole & self.candidates[code].around]

    def put_back(self):
        """Have the functions run as they were written."""
        for each in self.compiled:
            each.leave()

    def spots(self):
        """Return where the functions are that were compiled."""
        found = (self.run.places.code_spot(each.code) for each in self.compiled)
        return [spot for spot in found if spot is not None]

    def count(self):
        """Begin to count traces."""
        self.counted = self._traces()

    def unsettled(self, steps):
        """Say why the last `steps` steps are no sample of a compiled step; "" where they are one."""
        if not any(each.called for each in self.compiled):
            return GONE
        if 2 * (self._traces() - self.counted) <= steps:
            return ""
        causes = [cause for each in self.compiled for cause in each.causes()]
        return "it is traced anew in every step: %s" % (causes[-1] if causes else "its arguments change")

    def _traces(self):
        return sum(each.traces() for each in self.compiled)


class Compiled:
    """One function of the user's, its code, and the ``tf.function`` that stands in for it while `enter` holds."""

    def __init__(self, owner, function, update):
        self.owner = owner
        self.function = function
        self.update = update
        self.code = function.__code__
        self.called = False
        self.plain = types.FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.plain.__kwdefaults__ = function.__kwdefaults__
        self.plain.__qualname__ = function.__qualname__
        self.plain.__module__ = function.__module__
        self.graph = owner.run.tensorflow.function(self.plain)
        self.substitute = stand_in(self.code, self)

    def enter(self):
        """Stand in for the function."""
        self.function.__code__ = self.substitute

    def leave(self):
        """Give the function its own code back."""
        self.function.__code__ = self.code

    def traces(self):
        """Return how often the function was traced."""
        return self.graph.experimental_get_tracing_count()

    def causes(self):
        """Return what made it trace again, in words."""
        return self.owner.run.functions.record_of(self.graph).causes

    def __call__(self, *args, **kwargs):
        """Run the step as a graph; one that cannot be traced runs as it is, and the arm is told."""
        try:
            result = self.graph(*args, **kwargs)
        except Exception as problem:
            if self.called:
                raise
            self.owner.put_back()
            self.owner.run.trials.refused(problem)
            return self.plain(*args, **kwargs)
        self.called = True
        self.owner.run.trials.stepped(self.update)
        return result


def stand_in(code, call):
    """Return code for a function that has `code`: it calls `call` with whatever it is given.

    Only its constants are made up: a function's code may be exchanged for one with as many free variables.
    """

    def passed_on(*_tflint_gpu_given, **_tflint_gpu_named):
        _tflint_gpu_call = "the compiled step"
        return _tflint_gpu_call(*_tflint_gpu_given, **_tflint_gpu_named)

    made = passed_on.__code__
    constants = tuple(call if constant == "the compiled step" else constant for constant in made.co_consts)
    return made.replace(co_consts=constants, co_freevars=code.co_freevars)
