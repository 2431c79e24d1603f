"""How long the passes over validation data take that ``fit`` makes between epochs."""

from time import perf_counter

from .hooks import patch


class Validation:
    """Times the calls of ``evaluate`` that Keras makes inside ``fit``.

    `passes` holds the milliseconds of each. The first one traces the step, so it counts as its batches after the
    first, scaled to all of them.
    """

    def __init__(self):
        self.passes = []
        self.batches = 0
        self.first_batch_end = None

    def install(self, keras):
        """Note when batches of an evaluation end."""
        patch(keras.callbacks.CallbackList, "on_test_batch_end", self._batch_end)

    def _batch_end(self, original):
        def watched(*args, **kwargs):
            self.batches += 1
            if self.batches == 1:
                self.first_batch_end = perf_counter()
            return original(*args, **kwargs)

        return watched

    def timed(self, original, model, args, kwargs):
        """Call ``evaluate`` as `original` and note its time."""
        self.batches = 0
        began = perf_counter()
        result = original(model, *args, **kwargs)
        end = perf_counter()
        if self.passes:
            self.passes.append((end - began) * 1000.0)
        elif self.batches > 1:
            later = (end - self.first_batch_end) * 1000.0
            self.passes.append(later * self.batches / (self.batches - 1))
        return result
