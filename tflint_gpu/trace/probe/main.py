"""The run: the user's script as ``__main__`` with everything watched, then one report file, then the end."""

import contextlib
import json
import os
import runpy
import sys
import threading
import time
import traceback
import types

from . import facts, placement, seeds
from .clock import DONE, PLAIN, PROFILE, WARMUP, Clock, Limits
from .eager import EagerWatch
from .eager_steps import CHANGE, EagerSteps
from .experiments import Experiment, target_of
from .functions import FunctionWatch
from .hooks import ImportWatch
from .keras_steps import KerasWatch
from .lines import Lines, watch_autograph
from .loops import LoopWatch
from .losses import Losses
from .mutes import Mutes
from .places import Places, identity
from .processes import Processes
from .profile import NoMarker, Profile
from .python_input import PythonInput
from .recipes import Recipes
from .replaced import Replaced
from .threads import watch_threads
from .told import tell
from .trials import Trials
from .watch import DeadlineWatch


class Run:
    """Everything one traced run knows; the watches share it."""

    def __init__(self, job):
        self.job = job
        cells = {cell["filename"]: (job["script"], cell["cell"]) for cell in job.get("cells") or ()}
        self.places = Places(job["roots"], job["start"], cells)
        self.target = target_of(job.get("target"))
        self.replaced = Replaced(job.get("replaced") or {})
        self.losses = Losses(job.get("losses") or 0)
        self.profile = Profile(job["profile"])
        limits = Limits(job["warmup"], job["plain"], job["window"], job["seconds"])
        self.clock = Clock(limits, self._enter, self._marker, self._stepped, self.settle)
        self.lines = Lines(self.places)
        self.mutes = Mutes(self.places)
        self.experiment = Experiment(self, job.get("change"), self.target)
        self.eager = EagerWatch(self)
        self.functions = FunctionWatch(self)
        self.loops = LoopWatch(self)
        self.recipes = Recipes(self)
        self.python_input = PythonInput(self)
        self.keras = KerasWatch(self)
        self.processes = Processes(self._replaced_by)
        #: The thread that is watched: that of the script, until another begins to train.
        self.thread = threading.get_ident()
        self.tensorflow = None
        self.imported_at = None
        self.keras_modules = []
        self.dataset_class = None
        self.chains = []
        self.trials = Trials(self, job.get("arms") or (), job.get("budget") or 0.0)
        self.eager_steps = EagerSteps(self, CHANGE in (job.get("arms") or ()))
        self.watch = None
        #: How often `work` took a number of the counter of eager tensors.
        self.asked = 0
        self.window_at = [None, None]
        self.steps_per_execution = 1
        self.recording = False
        #: Whether a repeated call was given a new iterator each time, which it would not have got of the script.
        self.input_restarted = False
        self.finishing = threading.Lock()

    def install(self):
        """Arrange that TensorFlow and Keras are watched from the moment the script imports them."""
        actions = {"tensorflow": self._tensorflow, "keras": self._keras, "tf_keras": self._keras}
        if "seed" in self.job:
            seeds.seed_python(self.job["seed"])
            actions["numpy"] = lambda numpy: seeds.seed_numpy(numpy, self.job["seed"])
        actions["matplotlib.figure"] = self.mutes.install_matplotlib
        actions["multiprocessing.process"] = self.processes.install_multiprocessing
        ImportWatch(actions)
        self.mutes.watch_files()
        self.processes.install()
        watch_threads(self.places)

    def _tensorflow(self, tf):
        self.tensorflow = tf
        self.imported_at = time.monotonic()
        if "seed" in self.job:
            seeds.seed_tensorflow(tf, self.job["seed"])
        self.dataset_class = tf.data.Dataset
        self.functions.install(tf)
        self.loops.install(tf)
        self.recipes.install(tf)
        self.python_input.install(tf)
        self.mutes.install(tf)
        watch_autograph(self.places, self.lines)

    def _keras(self, keras):
        self.keras_modules.append(keras)
        self.keras.install(keras)
        self.functions.install_keras(keras)
        self.mutes.install_keras(keras)
        self.experiment.keras(keras)

    def in_other_thread(self):
        """Say whether this is not the watched thread, but that of a replica or of a dataset's Python."""
        return threading.get_ident() != self.thread or self.processes.forked

    def claim_thread(self):
        """Watch the thread that calls this from now on; returns whether it is: nothing may have trained elsewhere.

        Programs with a window or a server train in a thread of their own. TensorFlow's own threads, which run the
        replicas of a strategy, work for the one that is watched already.
        """
        own = type(threading.current_thread()).__module__.partition(".")[0] in ("tensorflow", "keras", "tf_keras")
        if (
            own
            or self.processes.forked
            or self.clock.driver is not None
            or self.keras.depth
            or self.functions.stack
        ):
            return False
        self.thread = threading.get_ident()
        return True

    def keras_depth(self):
        """Return how many calls of Keras' entry points are running."""
        return self.keras.depth

    def warm(self):
        """Say whether the program is past the first steps, so that a trace now is a retrace."""
        driver = self.clock.driver
        return self.clock.phase != WARMUP or (driver is not None and len(driver.steps) >= 2)

    def work(self, eager=False):
        """Return a count that grows while TensorFlow runs functions for the script; `eager`: ops too."""
        count = sum(record.calls for record in self.functions.records.values())
        ops = sys.modules.get("tensorflow.python.framework.ops") if eager else None
        if hasattr(ops, "uid"):
            # The counter that every eager tensor takes its number from; asking for it takes one too.
            self.asked += 1
            count += ops.uid() - self.asked
        return count

    def muted_callbacks(self, arguments):
        """Return the arguments of fit without the callbacks that write."""
        if arguments.get("callbacks") is not None and type(arguments["callbacks"]).__name__ != "CallbackList":
            arguments["callbacks"] = self.mutes.callbacks(arguments["callbacks"])
        return arguments

    def note_chain(self, chain):
        """Remember the stages of a dataset that trains."""
        if chain and chain not in self.chains:
            self.chains.append(chain)

    def _is_target(self, track):
        return self.target.get("kind") == track.kind and self.target.get("spot") == identity(track.spot)

    def extends(self, track):
        """Say whether a loop shall go on after its end because the script's own steps are too few."""
        return bool(self.job.get("extend")) and self._is_target(track)

    def repeats(self, track):
        """Say whether a call shall be made again with the same arguments for the same reason."""
        return bool(self.job.get("repeat")) and self._is_target(track) and self.clock.phase != DONE

    def _marker(self, number):
        fit = self.clock.driver is not None and self.clock.driver.kind == "fit"
        return NoMarker() if fit and self.keras.own_marker else self.profile.marker(number)

    def _stepped(self, track):
        """Count eager ops for a few steps of the warm-up, once the first step has traced everything."""
        if self.clock.phase != WARMUP or self.job.get("lean"):
            return
        if self.eager.on:
            self.eager.steps += 1
            if self.eager.steps >= 4:
                self.eager.stop()
        elif len(track.steps) >= 2:
            self.eager.start()

    def settle(self):
        """Wait until every GPU has done what it was given; nothing to wait for without one."""
        tf = self.tensorflow
        for gpu in tf.config.list_logical_devices("GPU") if tf is not None else ():
            with tf.device(gpu.name):
                # A value that comes back from the device comes after all work that was queued before it.
                (tf.zeros(()) + 1.0).numpy()

    def before_first_step(self):
        """Have TensorFlow keep the graphs it runs, now that the script has set its devices up."""
        if not self.recording and not self.job.get("lean"):
            self.recording = True
            placement.start_recording()

    def _enter(self, phase):
        if phase == PLAIN:
            self.window_at[0] = time.time()
            self.lines.stop()
            self.eager.stop()
            self.eager_steps.rest()
        elif phase == PROFILE:
            if self.job.get("lean"):
                self.finish("complete")
            self.profile.start()
        elif phase == DONE:
            self._complete()

    def _complete(self):
        """Write the report of the window, then try what the job asks for, or leave."""
        self.profile.stop()
        tell(self.job["report"], facts.report(self, "complete"))
        fit = self.keras.fits[-1] if self.keras.fits else None
        if not self.trials.start(self.clock.driver, fit.arguments if fit is not None else None):
            self.leave()
        self.watch.extend(self.trials.budget)

    def profile_by_time(self, seconds):
        """Profile a program without steps for `seconds` and end it."""
        self.window_at[0] = time.time()
        self.profile.start()
        time.sleep(seconds)
        self.finish("time", seconds=seconds)

    def _replaced_by(self, program):
        self.finish("replaced", program=program, spot=self.places.caller())

    def finish(self, status, **more):
        """Write the report, if that was not done, and leave; never returns."""
        if self.processes.forked:
            # The report is that of the first process; a forked copy ends as it would have without us.
            self.leave(more.get("exit", 1))
        if not self.finishing.acquire(blocking=False):
            # Another thread is already at it and will end the process.
            threading.Event().wait()
        if self.trials.running:
            self.trials.failed(more.get("error"))
            self.leave()
        if self.watch is not None:
            self.watch.reporting()
        try:
            self.profile.stop()
            report = facts.report(self, status)
            report.update(more)
        except BaseException:
            report = {"status": "broken", "error": {"text": traceback.format_exc()}}
        tell(self.job["report"], report)
        self.leave()

    def leave(self, status=0):
        """End the process at once.

        An interpreter that shuts down while a ``numpy_function`` of a dataset is in flight hangs for ever.
        """
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if not self.processes.forked:
            remove_generated()
        os._exit(status)


def remove_generated():
    """Remove the modules that AutoGraph wrote to the temporary folder, as a normal exit would."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if os.path.basename(file).startswith("__autograph_generated_file"):
            with contextlib.suppress(OSError):
                os.remove(file)


def join_threads():
    """Wait for the threads that Python waits for at its end: one of them may train."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def run_script(job, read):
    """Run the script, module or notebook of `job` as ``__main__``; `read` gives the bytes of a script."""
    sys.argv = [job["script"]] + list(job["argv"])
    if job["mode"] == "module":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(job["script"])))
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    main.__file__ = job["script"]
    sys.modules["__main__"] = main
    if job["mode"] == "notebook":
        run_cells(job["cells"], main)
        return
    path = os.path.abspath(job["script"])
    exec(compile(read(path), path, "exec", dont_inherit=True), main.__dict__)


def run_cells(cells, main):
    """Run the code cells of a notebook one after the other in the one namespace of `main`."""
    import linecache

    main.__dict__.setdefault("display", lambda *shown, **options: None)
    for cell in cells:
        lines = cell["source"].splitlines(True)
        # AutoGraph reads the source of functions through this cache.
        linecache.cache[cell["filename"]] = (len(cell["source"]), None, lines, cell["filename"])
    for cell in cells:
        exec(compile(cell["source"], cell["filename"], "exec", dont_inherit=True), main.__dict__)


def crash_of(problem, places):
    """Return an exception as a record: its name, its text and the innermost line of the user's."""
    spot = None
    for frame, line in traceback.walk_tb(problem.__traceback__):
        spot = places.spot_of(frame.f_code.co_filename, line, frame.f_code.co_name) or spot
    if isinstance(problem, SyntaxError) and problem.filename:
        spot = places.spot_of(problem.filename, problem.lineno or 1) or spot
    return {"type": type(problem).__name__, "text": str(problem), "spot": spot}


def run(path):
    """Run the job file at `path`; ends the process."""
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    current = Run(job)
    watch = current.watch = DeadlineWatch(current, job["deadline"], job["dump"], job.get("third"))
    current.install()
    if not job.get("lean"):
        current.lines.start()
    try:
        try:
            run_script(job, current.replaced.read)
        finally:
            join_threads()
    except SystemExit as leaving:
        code = leaving.code
        if code is not None and not isinstance(code, int):
            # What Python itself does with a message, and often the only line that says why.
            sys.stderr.write(f"{code}\n")
        current.finish("ended", exit=code if isinstance(code, int) else (0 if code is None else 1))
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException as problem:
        traceback.print_exc()
        current.finish("crashed", error=crash_of(problem, current.places))
    watch.cancel()
    current.finish("ended", exit=0)
