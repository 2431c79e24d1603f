"""Steps and calls of Keras models: fit, train_on_batch, predict, evaluate, and the callbacks' time."""

import contextlib
import functools
import inspect
from collections import defaultdict
from time import perf_counter

from .hooks import patch, patch_defining
from .layers import watch_compile, watch_layers
from .loops import batch_of, chain_of, rows_of
from .places import identity
from .trials import BlockDone
from .validation import Validation

ENTRIES = ("fit", "evaluate", "predict", "train_on_batch", "predict_on_batch")
TRAINING = ("fit", "train_on_batch")
#: Calls whose own time is kept, per line of the user's.
KEPT = 400


class Fit:
    """One running call of ``fit``: its track, and how many batches and epochs it has seen."""

    def __init__(self, track, arguments):
        self.track = track
        self.arguments = arguments
        self.batches = 0
        self.begin = None
        self.last_end = None
        self.epoch_end = None
        self.epoch_began_at = 0


class KerasWatch:
    """Watches one installation of Keras (2 or 3, standalone or inside TensorFlow)."""

    def __init__(self, run):
        self.run = run
        self.depth = 0
        self.fits = []
        self.inside = []
        self.entries = []
        self.running = []
        self.calls = {}
        self.callbacks = {}
        self.epoch_gaps = []
        self.epoch_steps = []
        self.models = []
        self.validation = Validation()
        self.own_marker = False
        self.patched = set()

    def install(self, keras):
        """Patch the classes of the package `keras`."""
        model = keras.Model
        if model in self.patched:
            return
        self.patched.add(model)
        version = getattr(keras, "__version__", "") or getattr(self.run.tensorflow, "__version__", "3")
        # The fit of Keras 2 labels its steps itself.
        self.own_marker = version.startswith("2")
        watch_layers(keras.layers.Layer, self.run.places.is_project)
        watch_compile(model)
        for entry in ENTRIES:
            patch_defining(model, entry, functools.partial(self._entry, entry))
        listing = keras.callbacks.CallbackList
        patch(listing, "on_train_batch_begin", self._batch_begin)
        patch(listing, "on_train_batch_end", self._batch_end)
        patch(listing, "on_epoch_end", self._epoch_end)
        self.validation.install(keras)

    def _entry(self, method, original):
        def watched(model, *args, **kwargs):
            if self.run.in_other_thread() and not (method in TRAINING and self.run.claim_thread()):
                return original(model, *args, **kwargs)
            spot = self.run.places.caller()
            self.entries.append((method, identity(spot)))
            try:
                return self._enter(method, spot, model, original, args, kwargs)
            finally:
                self.entries.pop()

        return watched

    def _enter(self, method, spot, model, original, args, kwargs):
        if method == "evaluate" and spot is None and self.fits:
            return self.validation.timed(original, model, args, kwargs)
        if spot is None or (method == "fit" and self.fits):
            return original(model, *args, **kwargs)
        if self.depth:
            return self._timed(method, spot, model, original, args, kwargs)
        self.depth += 1
        try:
            if method == "fit":
                return self._fit(original, spot, model, args, kwargs)
            if method == "train_on_batch":
                return self._train_on_batch(original, spot, model, args, kwargs)
            return self._timed(method, spot, model, original, args, kwargs)
        finally:
            self.depth -= 1

    def entry(self):
        """Return the running entry point of Keras and the line that called it, ``(None, None)`` outside."""
        return self.entries[-1] if self.entries else (None, None)

    def _timed(self, method, spot, model, original, args, kwargs):
        record = self._begin_call(method, spot, args[0] if args else kwargs.get("x"))
        try:
            return original(model, *args, **kwargs)
        finally:
            self._end_call(record)

    def _begin_call(self, method, spot, given):
        """Count a call of an entry point and start its clock."""
        key = (method, identity(spot))
        record = self.calls.setdefault(
            key, {"method": method, "spot": spot, "calls": 0, "ms": [], "rows": [], "inside": self._where()}
        )
        record.setdefault("by_step", defaultdict(float))
        record["calls"] += 1
        if len(record["rows"]) < KEPT:
            record["rows"].append(rows_of(given))
        self.running.append((record, perf_counter()))
        return record

    def _end_call(self, record):
        _, began = self.running.pop()
        ms = (perf_counter() - began) * 1000.0
        if len(record["ms"]) < KEPT:
            record["ms"].append(ms)
        driver = self.run.clock.driver
        if driver is not None and driver.opened is not None:
            record["by_step"][len(driver.steps)] += ms

    def report(self):
        """Return the calls; one that still runs counts with the time it has taken so far."""
        for record, began in self.running:
            if not record["ms"]:
                record["ms"].append((perf_counter() - began) * 1000.0)
        return list(self.calls.values())

    def _where(self):
        if self.inside:
            return self.inside[-1]
        if self.depth and self.fits:
            return "fit"
        driver = self.run.clock.driver
        return driver.kind if driver is not None and driver.opened is not None else ""

    def _train_on_batch(self, original, spot, model, args, kwargs):
        run = self.run
        self._remember(model)
        run.clock.training_seen()
        track = run.clock.track("train_on_batch", identity(spot), spot)
        if track.batch_size is None:
            track.batch_size = rows_of(args[0] if args else kwargs.get("x"))
        run.clock.tick(track)
        result = self._timed("train_on_batch", spot, model, original, args, kwargs)
        track.last_return = perf_counter()
        run.losses.note("train_on_batch", spot, result)
        while run.repeats(track):
            run.clock.tick(track)
            self._timed("train_on_batch", spot, model, original, args, kwargs)
            track.last_return = perf_counter()
        return result

    def _fit(self, original, spot, model, args, kwargs):
        run = self.run
        self._remember(model)
        run.clock.training_seen()
        track = run.clock.track("fit", identity(spot), spot)
        track.electable = False
        calls = run.clock.track("train_on_batch", identity(spot), spot)
        began = perf_counter()
        record = self._begin_call("fit", spot, args[0] if args else kwargs.get("x"))
        arguments = bind(original, model, args, kwargs)
        if arguments is not None:
            arguments = run.experiment.fit_arguments(model, run.muted_callbacks(arguments))
            self._prepare(track, arguments)
            self._extend(track, arguments)
            args, kwargs = (), {key: value for key, value in arguments.items() if key != "self"}
        self._watch_callbacks(kwargs.get("callbacks"), track)
        fit = Fit(track, arguments)
        self.fits.append(fit)
        try:
            with contextlib.suppress(BlockDone):
                return original(model, *args, **kwargs)
            # Not while the exception is handled: its frames hold the iterator that fit was drawing from.
            return run.trials.fit(original, model, arguments)
        finally:
            self.fits.pop()
            run.clock.drop(track)
            track.electable = True
            self._end_call(record)
            if fit.batches == 1:
                # A fit of one step is a step of the program around it.
                calls.batch_size = track.batch_size
                run.clock.tick(calls, since=began)
                calls.last_return = perf_counter()

    def _prepare(self, track, arguments):
        given = arguments.get("x")
        track.batch_size = batch_size_of(given, arguments, self.run)
        track.chain = chain_of(given, self.run)
        if track.chain is not None:
            self.run.note_chain(track.chain)
        arguments["x"] = self.run.python_input.watch_fit_input(given, track)
        if not self.run.job.get("extend"):
            self._shorten(arguments, given, track)

    def _shorten(self, arguments, given, track):
        epochs = arguments.get("epochs") or 1
        steps = arguments.get("steps_per_epoch") or length_of(given, track.batch_size, arguments)
        # A fit in a loop may come again, and what its repetition costs is to be seen.
        if steps and not self.run.places.in_loop():
            self.run.clock.limits.shorten(epochs * steps, self.run.job.get("past") or 0)

    def _extend(self, track, arguments):
        """Go on with more epochs where the script's own were too few to measure."""
        if self.run.extends(track):
            arguments["epochs"] = (arguments.get("initial_epoch") or 0) + 100000

    def _remember(self, model):
        if all(known is not model for known in self.models):
            self.models.append(model)

    def _batch_begin(self, original):
        def watched(listing, *args, **kwargs):
            if self.fits and not self.run.in_other_thread():
                fit = self.fits[-1]
                self._gap(fit)
                self.run.clock.open(fit.track)
                fit.begin = first_number(args, kwargs)
            return original(listing, *args, **kwargs)

        return watched

    def _gap(self, fit):
        if fit.epoch_end is not None:
            self.epoch_gaps.append((perf_counter() - fit.epoch_end) * 1000.0)
            fit.epoch_end = None
            fit.track.epoch()

    def _batch_end(self, original):
        def watched(listing, *args, **kwargs):
            result = original(listing, *args, **kwargs)
            if self.fits and not self.run.in_other_thread():
                fit = self.fits[-1]
                end = first_number(args, kwargs)
                count = max(1, end - fit.begin + 1) if end is not None and fit.begin is not None else 1
                fit.batches += count
                fit.track.electable = fit.batches >= 2
                self.run.steps_per_execution = count
                logs = args[1] if len(args) > 1 else kwargs.get("logs")
                self.run.losses.note("fit", fit.track.spot, logs, fit.batches)
                fit.last_end = perf_counter()
                self.run.clock.close(fit.track, count)
                trials = self.run.trials
                if trials.running and (trials.arm is None or trials.block_full()):
                    raise BlockDone
            return result

        return watched

    def _epoch_end(self, original):
        def watched(listing, *args, **kwargs):
            result = original(listing, *args, **kwargs)
            if self.fits and not self.run.in_other_thread():
                fit = self.fits[-1]
                fit.epoch_end = fit.last_end
                self.epoch_steps.append(fit.batches - fit.epoch_began_at)
                fit.epoch_began_at = fit.batches
            return result

        return watched

    def _watch_callbacks(self, callbacks, track):
        if callbacks is None:
            return
        listed = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        for callback in listed:
            if not hasattr(callback, "_tflint_gpu_watched"):
                self._watch_callback(callback, track)

    def _watch_callback(self, callback, track):
        name = type(callback).__name__
        # Times of the batch methods by the number of the step they belong to, and of the epoch methods by epoch.
        record = {"name": name, "spot": None, "track": track, "batch": defaultdict(float), "epochs": [0.0]}
        for name in ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end"):
            self._watch_method(callback, name, record, per_batch=True)
        for name in ("on_epoch_begin", "on_epoch_end"):
            self._watch_method(callback, name, record, per_batch=False)
        try:
            callback._tflint_gpu_watched = True
        except AttributeError:
            return
        if record["spot"] is not None or record.get("watched"):
            self.callbacks[id(callback)] = record

    def _watch_method(self, callback, name, record, per_batch):
        method = getattr(callback, name, None)
        function = getattr(method, "__func__", method)
        code = getattr(function, "__code__", None)
        # The methods that Keras inherits to everybody do nothing or pass on to another watched one.
        if code is None or getattr(function, "__qualname__", "").split(".")[0] in ("Callback", "CallbackList"):
            return
        record["watched"] = True
        record["spot"] = record["spot"] or self.run.places.code_spot(code)
        label = "%s.%s" % (record["name"], name)

        @functools.wraps(method)
        def timed(*args, **kwargs):
            began = perf_counter()
            self.inside.append(label)
            try:
                return method(*args, **kwargs)
            finally:
                self.inside.pop()
                spent = (perf_counter() - began) * 1000.0
                if per_batch:
                    record["batch"][len(record["track"].steps)] += spent
                else:
                    record["epochs"][-1] += spent
                    record["epochs"] += [0.0] * (name == "on_epoch_end")

        try:
            setattr(callback, name, timed)
        except AttributeError:
            return


def first_number(args, kwargs):
    """Return the batch number that Keras hands to its callbacks, None where it is none."""
    given = args[0] if args else kwargs.get("batch")
    return int(given) if isinstance(given, int) else None


def bind(function, model, args, kwargs):
    """Return the arguments of a call by name; None where they do not fit the signature or it has stars."""
    try:
        bound = inspect.signature(function).bind(model, *args, **kwargs)
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in bound.signature.parameters.values()):
        return None
    return dict(bound.arguments)


def length_of(given, batch_size, arguments):
    """Return the number of batches that fit will draw an epoch, None where it is not known beforehand."""
    cardinality = getattr(given, "cardinality", None)
    if cardinality is not None:
        try:
            count = int(cardinality())
        except Exception:
            return None
        return count if count > 0 else None
    rows = rows_of(given)
    if rows and batch_size:
        rows -= int(rows * (arguments.get("validation_split") or 0.0))
        return -(-rows // batch_size)
    if hasattr(given, "__getitem__") and hasattr(given, "__len__") and not isinstance(given, (dict, list, tuple)):
        return len(given)
    return None


def batch_size_of(given, arguments, run):
    """Return the rows of one step of fit: the argument for arrays, the dataset's own batch otherwise."""
    found = batch_of(given, run)
    if found is not None:
        return found
    if run.dataset_class is not None and isinstance(given, run.dataset_class):
        # What fit draws from is batches.
        return rows_of(given.element_spec)
    rows = rows_of(given)
    return min(rows, arguments.get("batch_size") or 32) if rows else None
