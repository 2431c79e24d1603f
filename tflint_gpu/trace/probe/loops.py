"""Loops over datasets in Python, and the user's line behind every dataset."""

import threading
from time import perf_counter

from .hooks import patch
from .places import KERAS, OTHER, OURS, TENSORFLOW, identity

#: Words in the names of datasets whose elements are no longer those of their input.
REGROUPING = ("Unbatch", "FlatMap", "Interleave", "Group", "Window", "Rebatch")

#: Functions of TensorFlow that only pass an iteration on to the user's loop.
PASSING = ("as_numpy_iterator", "__iter__", "__init__")


class LoopWatch:
    """Watches iteration over ``tf.data`` and distributed datasets in eager code."""

    def __init__(self, run):
        self.run = run
        self.tf = None
        self.made = threading.local()

    def install(self, tf):
        """Patch the dataset and iterator classes of `tf`."""
        from tensorflow.python.data.ops import dataset_ops, iterator_ops
        from tensorflow.python.distribute import input_lib

        self.tf = tf
        patch(dataset_ops.DatasetV2, "__init__", self._created)
        patch(dataset_ops.DatasetV2, "__iter__", self._iterated)
        for batching in ("batch", "padded_batch", "ragged_batch"):
            patch(dataset_ops.DatasetV2, batching, self._batched)
        patch(iterator_ops.OwnedIterator, "__next__", self._drawn)
        patch(iterator_ops.OwnedIterator, "get_next", self._drawn_by_name)
        for name in ("DistributedDataset", "DistributedDatasetsFromFunction", "DistributedDatasetV1"):
            if hasattr(input_lib, name):
                patch(getattr(input_lib, name), "__iter__", self._iterated)
        if hasattr(input_lib, "DistributedIteratorBase"):
            patch(input_lib.DistributedIteratorBase, "__next__", self._drawn)

    def _created(self, original):
        def watched(dataset, *args, **kwargs):
            original(dataset, *args, **kwargs)
            if self.run.keras_depth() == 0:
                spot = self.run.places.anywhere()
                if spot is not None:
                    dataset._tflint_gpu_spot = spot

        return watched

    def _batched(self, original):
        def watched(dataset, batch_size, *args, **kwargs):
            if self.run.keras_depth() == 0:
                batch_size = self.run.experiment.batch_size(batch_size, self.run.places.anywhere())
            return original(dataset, batch_size, *args, **kwargs)

        return watched

    def _loop_spot(self):
        """Return the user's line that iterates, None where TensorFlow or Keras do it for themselves."""
        import sys

        frame, places = sys._getframe(2), self.run.places
        while frame is not None:
            code = frame.f_code
            kind = places.kind(code.co_filename)
            if kind not in (OURS, OTHER, TENSORFLOW, KERAS):
                return places.spot_of(code.co_filename, frame.f_lineno, code.co_name)
            if kind == KERAS or (kind == TENSORFLOW and code.co_name not in PASSING):
                return None
            frame = frame.f_back
        return None

    def _iterated(self, original):
        def watched(dataset):
            run = self.run
            if run.keras_depth() or run.in_other_thread() or not self.tf.executing_eagerly():
                return original(dataset)
            spot = self._loop_spot()
            if spot is not None:
                dataset = run.experiment.loop(dataset, spot)
            iterator = original(dataset)
            if spot is not None:
                self._follow(iterator, dataset, spot)
            return iterator

        return watched

    def _follow(self, iterator, dataset, spot):
        track = self.run.clock.track("dataset loop", identity(spot), spot)
        if track.chain is None:
            track.chain = chain_of(dataset, self.run) or []
            track.batch_size = batch_of(dataset, self.run)
        track.epoch()
        try:
            iterator._tflint_gpu_track = track
            iterator._tflint_gpu_source = dataset
        except AttributeError:
            return

    def _drawn(self, original):
        def watched(iterator, *args, **kwargs):
            track = getattr(iterator, "_tflint_gpu_track", None)
            if track is None or self.run.keras_depth() or not self.tf.executing_eagerly():
                return original(iterator, *args, **kwargs)
            return self._draw(track, iterator, original, args, kwargs)

        return watched

    def _drawn_by_name(self, original):
        def watched(iterator, *args, **kwargs):
            track = getattr(iterator, "_tflint_gpu_track", None)
            # ``__next__`` of some versions calls ``get_next``: the draw is counted once.
            if track is None or self.run.keras_depth() or getattr(self.made, "drawing", False):
                return original(iterator, *args, **kwargs)
            if not self.tf.executing_eagerly():
                return original(iterator, *args, **kwargs)
            return self._draw(track, iterator, original, args, kwargs)

        return watched

    def _draw(self, track, iterator, original, args, kwargs):
        run, clock = self.run, self.run.clock
        clock.close(track)
        run.eager_steps.drew()
        began = perf_counter()
        clock.open(track, began)
        loops = clock.active_loops
        if track in loops:
            loops.remove(track)
        loops.append(track)
        self.made.drawing = True
        try:
            if run.trials.running and track is run.trials.track:
                return run.trials.draw(iterator)
            element = run.experiment.element(track, lambda: original(iterator, *args, **kwargs))
        except StopIteration:
            element = self._again(track, iterator, original, args, kwargs)
        finally:
            self.made.drawing = False
        return element

    def _again(self, track, iterator, original, args, kwargs):
        """End the loop, or where the script's own steps were too few go on with the dataset's first element."""
        clock = self.run.clock
        clock.drop(track)
        if not (self.run.extends(track) and track.trained):
            clock.active_loops.remove(track)
            raise StopIteration
        fresh = iter(iterator._tflint_gpu_source)
        if hasattr(iterator, "_iterator_resource"):
            iterator.__dict__.update(fresh.__dict__)
        else:
            iterator._iterators = fresh._iterators
        track.epoch()
        clock.open(track)
        return original(iterator, *args, **kwargs)


def rows_of(given):
    """Return the number of rows of an array, tensor or nest of them; None for anything else."""
    while isinstance(given, (list, tuple, dict)) and given:
        given = next(iter(given.values())) if isinstance(given, dict) else given[0]
    shape = getattr(given, "shape", None)
    try:
        return int(shape[0]) if shape is not None and len(shape) else None
    except (TypeError, ValueError):
        return None


def chain_of(dataset, run):
    """Return the stages of a dataset from its end to its sources, or None where it is no dataset.

    Each is ``{"op", "spot", "depth"}`` with the class name of the stage; inputs of a joint follow one another.
    """
    if run.dataset_class is None:
        return None
    dataset = getattr(dataset, "_original_dataset", None) or getattr(dataset, "_dataset", None) or dataset
    if not isinstance(dataset, run.dataset_class):
        return None
    stages, waiting = [], [(dataset, 0)]
    while waiting and len(stages) < 200:
        stage, depth = waiting.pop()
        spot = getattr(stage, "_tflint_gpu_spot", None)
        stages.append({"op": type(stage).__name__.strip("_"), "spot": spot, "depth": depth})
        try:
            inputs = stage._inputs()
        except Exception:
            inputs = []
        waiting.extend((each, depth + 1) for each in reversed(inputs))
    return stages


def batch_of(dataset, run):
    """Return the batch size of the outermost batching stage of a dataset, None where it is not known.

    A stage that makes other elements of its input than it was given says nothing of its own.
    """
    if run.dataset_class is None:
        return None
    stage = getattr(dataset, "_original_dataset", None) or dataset
    if not isinstance(stage, run.dataset_class):
        return None
    for _ in range(200):
        size = getattr(stage, "_batch_size", None)
        if size is None and any(word in type(stage).__name__ for word in REGROUPING):
            return None
        if size is not None:
            try:
                return int(size)
            except (TypeError, ValueError):
                return None
        try:
            (stage,) = stage._inputs()
        except Exception:
            return None
    return None
