"""Calls and traces of ``tf.function``, and the calls that make a program a training: tapes and optimizers."""

from time import perf_counter

from .hooks import patch, patch_defining
from .places import identity

KEPT_CAUSES = 8
#: What Keras calls the function that an entry point runs for every batch.
KERAS_STEPS = {
    "fit": "train_function",
    "train_on_batch": "train_function",
    "evaluate": "test_function",
    "predict": "predict_function",
    "predict_on_batch": "predict_function",
}


class FunctionRecord:
    """What was seen of one function definition, however many function objects were made from it."""

    def __init__(self, name, spot):
        self.name = name
        self.spot = spot
        self.caller = None
        self.calls = 0
        self.traces = 0
        self.late = 0
        # Milliseconds of the calls that traced after warm-up, and of those that traced nothing with their number.
        self.late_ms = 0.0
        self.plain_ms = 0.0
        self.plain = 0
        self.causes = []
        self.trace_ms = []
        self.objects = set()
        self.jit = False
        self.trains = False
        self.signature = None

    def retrace_ms(self):
        """Return the milliseconds that tracing after warm-up took, less what the same calls take without it."""
        usual = self.plain_ms / self.plain if self.plain else 0.0
        return max(0.0, self.late_ms - self.late * usual)


class FunctionWatch:
    """Watches every ``tf.function`` object that is called, and notes which of them train."""

    def __init__(self, run):
        self.run = run
        self.tf = None
        self.stack = []
        self.records = {}
        self.kept = []
        self.applying = 0

    def install(self, tf):
        """Patch ``tf.function``'s class, the gradient tape and TensorFlow's own optimizers."""
        self.tf = tf
        cls = type(tf.function(lambda: None))
        patch(cls, "__call__", self._called)
        patch(tf.GradientTape, "gradient", self._gradient)
        patch_defining(tf.compat.v1.train.Optimizer, "apply_gradients", self._applied)

    def install_keras(self, keras):
        """Patch the optimizers of `keras`."""
        legacy = getattr(getattr(keras.optimizers, "legacy", None), "Optimizer", None)
        for optimizer in (keras.optimizers.Optimizer, legacy):
            if isinstance(optimizer, type):
                for name in ("apply", "apply_gradients"):
                    patch_defining(optimizer, name, self._applied)

    def record_of(self, function):
        """Return the record of a function object, by the code it was made from."""
        record = getattr(function, "_tflint_gpu_record", None)
        if record is None:
            record = function._tflint_gpu_record = self._find_record(function)
        return record

    def _find_record(self, function):
        python = function.python_function if hasattr(function, "python_function") else None
        python = unwrapped(python)
        code = getattr(python, "__code__", None)
        spot = self.run.places.code_spot(code)
        name = getattr(python, "__name__", None) or getattr(function, "_name", "function")
        key = code if code is not None else id(function)
        if spot is None:
            # Keras makes every step function from one piece of code: tell them by what asked for them.
            entry, line = self.run.keras.entry()
            name = KERAS_STEPS.get(entry, name)
            key = (key, entry, line)
        found = self.records.get(key)
        if found is None:
            found = self.records[key] = FunctionRecord(name, spot)
        return found

    def _called(self, original):
        def watched(function, *args, **kwargs):
            if self.run.in_other_thread():
                return original(function, *args, **kwargs)
            record = self.record_of(function)
            if record.calls > 1 and self.run.keras.depth and not self.stack:
                return self._known_call(original, function, record, args, kwargs)
            spot = None
            outermost = not self.stack and self.tf.executing_eagerly()
            if outermost and self.run.keras_depth() == 0:
                spot = self.run.places.caller()
            if outermost:
                self.run.before_first_step()
            began = perf_counter()
            track = None
            if spot is not None and record.trains:
                track = self._tick(spot, began)
            args = self.run.experiment.function(function, record, args)
            result = self._traced_call(original, function, record, args, kwargs, outermost)
            if spot is not None and record.trains:
                if track is None:
                    track = self._tick(spot, began)
                track.last_return = perf_counter()
                self.run.losses.note("step function", spot, result)
                self._repeat(track, original, function, args, kwargs)
            return result

        return watched

    def _known_call(self, original, function, record, args, kwargs):
        """Call a step function of Keras that was seen before: nothing can be new but another trace."""
        before, began = tracings(function), perf_counter()
        result = original(function, *args, **kwargs)
        self._count(function, record, before, began, args, kwargs)
        return result

    def _tick(self, spot, began):
        clock = self.run.clock
        clock.training_seen()
        track = clock.track("step function", identity(spot), spot)
        clock.tick(track, since=None if track.opened is not None else began)
        return track

    def _repeat(self, track, original, function, args, kwargs):
        clock = self.run.clock
        while self.run.repeats(track):
            # A new iterator is the repetition's own need, no part of the step.
            clock.close(track)
            with clock.pause():
                fresh = [self._fresh(value) for value in args]
            clock.open(track)
            try:
                original(function, *fresh, **kwargs)
            except (StopIteration, self.tf.errors.OutOfRangeError):
                return
            track.last_return = perf_counter()

    def _fresh(self, value):
        source = getattr(value, "_tflint_gpu_source", None)
        if source is None:
            return value
        self.run.input_restarted = True
        return iter(source)

    def _traced_call(self, original, function, record, args, kwargs, outermost):
        before = tracings(function)
        began = perf_counter()
        self.stack.append(record)
        try:
            return original(function, *args, **kwargs)
        finally:
            self.stack.pop()
            self._count(function, record, before, began, args, kwargs)

    def _count(self, function, record, before, began, args, kwargs):
        """Count a call that began at `began`, when the function had been traced `before` times."""
        ms = (perf_counter() - began) * 1000.0
        record.calls += 1
        if tracings(function) != before:
            self._note_trace(function, record, args, kwargs, ms)
        else:
            record.plain_ms += ms
            record.plain += 1

    def _note_trace(self, function, record, args, kwargs, ms):
        first = record.traces == 0
        record.traces += 1
        record.trace_ms.append(ms)
        record.jit = record.jit or bool(getattr(function, "_jit_compile", False))
        if record.caller is None:
            record.caller = self.run.places.anywhere()
        signature = signature_of(args, kwargs, self.tf)
        known = id(function) in record.objects
        record.objects.add(id(function))
        if not first:
            if self.run.warm():
                record.late += 1
                record.late_ms += ms
            cause = difference(record.signature, signature) if known else "a new tf.function object was made"
            if cause not in record.causes and len(record.causes) < KEPT_CAUSES:
                record.causes.append(cause)
        # Holding the object keeps its id from being given to another.
        if not known:
            self.kept.append((function, record))
        record.signature = signature

    def _trained(self, kind):
        """Note one update: it marks the functions it is traced in, or is a step of its own in eager code."""
        for record in self.stack:
            record.trains = True
        run = self.run
        if self.stack or run.keras_depth() or not self.tf.executing_eagerly():
            return
        spot = run.places.caller()
        run.clock.training_seen()
        if spot is not None:
            run.eager_steps.saw(kind, spot)
            run.clock.tick(run.clock.track(kind, identity(spot), spot))
            run.trials.updated(kind, identity(spot))

    def _applied(self, original):
        def watched(*args, **kwargs):
            if self.applying:
                return original(*args, **kwargs)
            self.applying += 1
            try:
                return original(*args, **kwargs)
            finally:
                self.applying -= 1
                self._trained("optimizer")

        return watched

    def _gradient(self, original):
        def watched(*args, **kwargs):
            if self.run.in_other_thread():
                self.run.claim_thread()
            result = original(*args, **kwargs)
            if not self.applying:
                self._note_target(args, kwargs)
                self._trained("gradient")
            return result

        return watched

    def _note_target(self, args, kwargs):
        """Keep the loss of an eager step: what its gradient was taken of."""
        run = self.run
        if self.stack or run.keras_depth() or not self.tf.executing_eagerly():
            return
        spot = run.places.caller()
        if spot is not None:
            run.losses.note("gradient", spot, args[1] if len(args) > 1 else kwargs.get("target"))

    def concrete_functions(self):
        """Return the concrete functions that train, and all that were seen, each once."""
        training, found = {}, {}
        for function, record in self.kept:
            try:
                listed = function._list_all_concrete_functions()
            except Exception:
                continue
            found.update((id(each), each) for each in listed)
            if record.trains:
                training.update((id(each), each) for each in listed)
        return list(training.values()), list(found.values())


def unwrapped(function):
    """Return the function behind methods, partials and the weak wrappers that TensorFlow makes of methods."""
    for _ in range(10):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        inner = inner or getattr(function, "func", None) or getattr(function, "__original_wrapped__", None)
        if inner is None or not callable(inner):
            return function
        function = inner
    return function


def tracings(function):
    """Return how often a function object was traced."""
    try:
        return function.experimental_get_tracing_count()
    except Exception:
        return 0


def signature_of(args, kwargs, tf):
    """Return a description of every leaf of a call's arguments: ``(name, kind, text)``."""
    leaves = []
    named = [("argument %d" % (number + 1), value) for number, value in enumerate(args)]
    named.extend(("argument %r" % name, value) for name, value in sorted(kwargs.items()))
    for name, value in named:
        for leaf in tf.nest.flatten(value):
            shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
            if shape is not None and dtype is not None:
                leaves.append((name, "shape", "%s %s" % (getattr(dtype, "name", dtype), tuple(shape))))
            elif isinstance(leaf, (bool, int, float, str, bytes, type(None))):
                leaves.append((name, "value", "%s %.40r" % (type(leaf).__name__, leaf)))
            else:
                leaves.append((name, "object", "a new %s" % type(leaf).__name__))
    return leaves


def difference(before, after):
    """Say in words which argument made a function trace again."""
    words = {"shape": "shape of %s changed: %s, then %s", "value": "Python value of %s changed: %s, then %s"}
    if before is None or len(before) != len(after):
        return "the structure of the arguments changed"
    for (name, _, old), (_, kind, new) in zip(before, after):
        if old != new:
            return words.get(kind, "%s is another object: %s, then %s") % (name, old, new)
    return "a captured value or another object of the same kind changed"
