"""What-if runs: one change each to the training that the baseline run found (the job's ``target``)."""

from . import recipes
from .loops import batch_of, rows_of
from .places import identity
from .python_input import is_pydataset

#: Steps of an epoch of a cached batch where the script does not say how many it has.
EPOCH = 1000
#: Workers that a ``PyDataset`` is given.
WORKERS = 4


class Experiment:
    """The change named `change`, applied where the training asks; without a name nothing changes.

    `applied` tells the report whether the training met it at all.
    """

    def __init__(self, run, change, target):
        self.run = run
        self.change = change or ""
        self.target = target or {}
        self.applied = False
        self.factor = int(self.change[7:]) if self.change.startswith("batch-x") else 1
        self.cached = {}

    def keras(self, keras):
        """Set the precision of the layers that the script is going to make."""
        if self.change.startswith("mixed-"):
            keras.mixed_precision.set_global_policy(self.change.replace("-", "_"))
            self.applied = True

    def fit_arguments(self, model, arguments):
        """Return the arguments of a call of fit as the change wants them."""
        given = arguments.get("x")
        if self.change == "cached-batch":
            return self._cached_fit(arguments)
        if self.change in recipes.CHANGES:
            return {**arguments, "x": self.dataset(given)}
        if self.change == "steps-per-execution-8":
            self._steps_per_execution(model, 8)
        elif self.change in ("xla", "xla-off"):
            self._jit_model(model, self.change == "xla")
        elif self.change == "callbacks-off":
            self.applied = bool(arguments.get("callbacks"))
            return {**arguments, "callbacks": None}
        elif self.change == "run-eagerly-off":
            self.applied = bool(model.run_eagerly)
            compile_step(model, self.run.tensorflow)
        elif self.change == "workers-4":
            return self._workers(arguments)
        elif self.factor > 1 and rows_of(given) and not is_pydataset(given):
            arguments["batch_size"] = (arguments.get("batch_size") or 32) * self.factor
            self.applied = True
        return arguments

    def dataset(self, dataset):
        """Return `dataset` made again with a change of the input."""
        cls = self.run.dataset_class
        if self.change not in recipes.CHANGES or cls is None or not isinstance(dataset, cls):
            return dataset
        made = self.run.recipes.again(self.change, dataset, batch_of(dataset, self.run))
        self.applied = self.applied or made is not None
        return dataset if made is None else made

    def loop(self, dataset, spot):
        """Return what the loop on the line of `spot` shall iterate over instead of `dataset`."""
        if self.target.get("kind") == "fit" or identity(spot) != self.target.get("loop"):
            return dataset
        return self.dataset(dataset)

    def _workers(self, arguments):
        """Have more threads call a ``PyDataset``, in Keras 2 as in Keras 3."""
        given = arguments.get("x")
        if not is_pydataset(given):
            return arguments
        if hasattr(given, "workers"):
            self.applied = given.workers <= 1
            given.workers = WORKERS
        elif (arguments.get("workers") or 1) <= 1:
            self.applied = True
            return {**arguments, "workers": WORKERS}
        return arguments

    def _cached_fit(self, arguments):
        given = arguments.get("x")
        batch, length = self._first_batch(given, arguments)
        if batch is None:
            return arguments
        dataset = self.run.tensorflow.data.Dataset.from_tensors(tupled(batch)).repeat()
        arguments = {
            key: value for key, value in arguments.items() if key not in ("y", "sample_weight", "batch_size")
        }
        # A split that fit makes of arrays cannot be made of a dataset; validation is no part of a step.
        arguments.pop("validation_split", None)
        arguments["x"] = dataset.prefetch(2)
        arguments.setdefault("steps_per_epoch", None)
        arguments["steps_per_epoch"] = arguments["steps_per_epoch"] or length or EPOCH
        self.applied = True
        return arguments

    def _first_batch(self, given, arguments):
        """Return the first batch of fit's input and the length of an epoch; ``(None, None)`` where unknown."""
        if self.run.dataset_class is not None and isinstance(given, self.run.dataset_class):
            count = int(given.cardinality())
            return next(iter(given)), count if count > 0 else None
        if is_pydataset(given):
            return given[0], len(given)
        if hasattr(given, "__next__"):
            return next(given), None
        rows = rows_of(given)
        if not rows:
            return None, None
        size = arguments.get("batch_size") or 32
        arrays = [given] + [arguments[key] for key in ("y", "sample_weight") if arguments.get(key) is not None]
        nest, length = self.run.tensorflow.nest, -(-rows // size)
        parts = tuple(nest.map_structure(lambda array: array[:size], array) for array in arrays)
        # A lone array reaches the step bare, as Keras hands it on; only several inputs stand in a tuple.
        bare = len(parts) == 1 and not nest.is_nested(given)
        return (parts[0] if bare else parts), length

    def _steps_per_execution(self, model, count):
        current = getattr(model, "_steps_per_execution", None)
        if hasattr(current, "assign"):
            current.assign(count)
            self.applied = True
        elif hasattr(model, "steps_per_execution"):
            model.steps_per_execution = count
            self.applied = True
        model.train_function = None

    def _jit_model(self, model, value):
        try:
            model.jit_compile = value
        except AttributeError:
            return
        if hasattr(model, "_jit_compile"):
            model._jit_compile = value
        model.train_function = None
        self.applied = True

    def element(self, track, draw):
        """Return the next element of a loop over a dataset: always its first one under ``cached-batch``."""
        wanted = self.change == "cached-batch" and self.target.get("kind") != "fit"
        if not wanted or identity(track.spot) != self.target.get("loop"):
            return draw()
        key = identity(track.spot)
        if key not in self.cached:
            self.cached[key] = draw()
            self.applied = True
        return self.cached[key]

    def batch_size(self, size, spot):
        """Return the size that a ``.batch`` on the line of `spot` shall have."""
        if self.factor == 1 or spot is None or identity(spot) != self.target.get("batch"):
            return size
        self.applied = True
        return size * self.factor

    def function(self, function, record, args):
        """Switch XLA for a training ``tf.function`` before its first trace."""
        if self.change not in ("xla", "xla-off") or record.traces or record.spot is None:
            return args
        if identity(record.spot) in self.target.get("functions", ()):
            function._jit_compile = self.change == "xla"
            self.applied = True
        return args


def compile_step(model, tf):
    """Have a model's step run as a graph, whoever asked for it to run op by op."""
    model.run_eagerly = False
    tf.config.run_functions_eagerly(False)
    model.train_function = None


def tupled(value):
    """Return `value` with lists as tuples: a dataset would stack a list's members into one tensor."""
    if isinstance(value, dict):
        return {key: tupled(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return tuple(tupled(each) for each in value)
    return value


def target_of(raw):
    """Return the job's target with its spots as keys that compare."""

    def key(spot):
        return None if spot is None else (spot["path"], spot["line"], spot.get("cell"))

    if not raw:
        return {}
    return {
        "kind": raw["kind"],
        "spot": key(raw.get("spot")),
        "loop": key(raw.get("loop")),
        "batch": key(raw.get("batch")),
        "functions": [key(spot) for spot in raw.get("functions", ())],
    }
