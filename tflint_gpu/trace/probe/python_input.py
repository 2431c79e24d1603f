"""Time in Python code that makes input: generators, ``py_function``, ``numpy_function``, ``PyDataset``."""

import functools
import threading
import types
from collections import defaultdict
from time import perf_counter

from .hooks import patch
from .loops import rows_of
from .places import OTHER, OURS, TENSORFLOW, identity


class PythonInput:
    """Counts calls and milliseconds of the user's input functions by phase of the trace."""

    def __init__(self, run):
        self.run = run
        self.records = {}
        self.lock = threading.Lock()
        self.patched = set()

    def install(self, tf):
        """Patch the places where Python functions enter a ``tf.data`` graph."""
        from tensorflow.python.data.ops import dataset_ops
        from tensorflow.python.ops import script_ops

        patch(dataset_ops.DatasetV2, "from_generator", self._from_generator)
        patch(script_ops, "_internal_py_func", self._py_func)

    def record(self, kind, name, spot):
        """Return the record of one input function at `spot`."""
        key = (kind, name, identity(spot))
        return self.records.setdefault(
            key,
            {"kind": kind, "name": name, "spot": spot, "calls": defaultdict(int), "ms": defaultdict(float)},
        )

    def _add(self, record, began):
        spent = (perf_counter() - began) * 1000.0
        phase = self.run.clock.phase
        with self.lock:
            record["calls"][phase] += 1
            record["ms"][phase] += spent

    def timed(self, function, record):
        """Return `function` with its calls counted in `record`."""

        @functools.wraps(function, updated=())
        def watched(*args, **kwargs):
            self.run.lines.join_thread()
            began = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._add(record, began)

        return watched

    def _from_generator(self, original):
        def watched(generator, *args, **kwargs):
            spot = self.run.places.caller(through=(OURS, OTHER, TENSORFLOW))
            if spot is None or not callable(generator):
                return original(generator, *args, **kwargs)
            record = self.record("generator", getattr(generator, "__name__", type(generator).__name__), spot)

            @functools.wraps(generator, updated=())
            def made(*inner):
                return TimedIterator(iter(generator(*inner)), self, record)

            return original(made, *args, **kwargs)

        return watched

    def _py_func(self, original):
        def watched(*args, **kwargs):
            function = kwargs["func"] if "func" in kwargs else args[0]
            record = self._record_of_function(function, kwargs.get("use_eager_py_func"))
            if record is not None:
                timed = self.timed(function, record)
                if "func" in kwargs:
                    kwargs["func"] = timed
                else:
                    args = (timed,) + args[1:]
            return original(*args, **kwargs)

        return watched

    def _record_of_function(self, function, eager):
        code = getattr(function, "__code__", None)
        places = self.run.places
        if not callable(function) or (code is not None and places.kind(code.co_filename) in (TENSORFLOW, "keras")):
            return None
        spot = places.anywhere()
        if spot is None and code is not None:
            spot = places.code_spot(code)
        if spot is None:
            return None
        name = getattr(function, "__name__", type(function).__name__)
        return self.record("py_function" if eager else "numpy_function", name, spot)

    def watch_fit_input(self, given, track):
        """Return what fit shall draw from in place of `given`, with the time of Python code in it counted."""
        if isinstance(given, types.GeneratorType):
            spot = self.run.places.code_spot(given.gi_code)
            return timed_generator(given, self, self.record("generator", given.__name__, spot), track)
        cls = type(given)
        if is_pydataset(given) and cls not in self.patched:
            self.patched.add(cls)
            owner = next(each for each in cls.__mro__ if "__getitem__" in vars(each))
            spot = self.run.places.code_spot(getattr(vars(owner)["__getitem__"], "__code__", None))
            record = self.record("PyDataset", cls.__name__, spot)
            patch(owner, "__getitem__", lambda original: self._item(original, record, track))
        return given

    def _item(self, original, record, track):
        timed = self.timed(original, record)

        def watched(*args, **kwargs):
            batch = timed(*args, **kwargs)
            if track.batch_size is None:
                track.batch_size = rows_of(batch)
            return batch

        return watched


class TimedIterator:
    """An iterator whose draws are counted in a record."""

    def __init__(self, inner, watch, record):
        self.draw = watch.timed(inner.__next__, record)

    def __iter__(self):
        return self

    def __next__(self):
        return self.draw()


def timed_generator(inner, watch, record, track):
    """Yield what `inner` yields, counting its draws; a true generator, as Keras asks for the type."""
    for item in TimedIterator(inner, watch, record):
        if track.batch_size is None:
            track.batch_size = rows_of(item)
        yield item


def is_pydataset(given):
    """Say whether `given` is a Keras ``PyDataset`` or ``Sequence``."""
    return any(
        cls.__name__ in ("PyDataset", "Sequence") and "keras" in cls.__module__ for cls in type(given).__mro__
    )
