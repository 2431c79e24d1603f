"""Which of the user's lines run ops one by one: counted over a few warm-up steps, as it costs time."""

from collections import Counter

from .places import identity


class EagerWatch:
    """Counts eager ops by the user's line while `on`."""

    def __init__(self, run):
        self.run = run
        self.on = False
        self.steps = 0
        self.counts = Counter()
        self.spots = {}
        self.total = 0

    def start(self):
        """Begin to count on this thread."""
        from tensorflow.python.framework import op_callbacks

        if not self.on and self.steps == 0:
            op_callbacks.add_op_callback(self._op)
            self.on = True

    def stop(self):
        """End counting."""
        if self.on:
            from tensorflow.python.framework import op_callbacks

            op_callbacks.remove_op_callback(self._op)
            self.on = False

    def _op(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is not None or self.run.in_other_thread():
            return
        self.total += 1
        spot = self.run.places.anywhere()
        if spot is not None:
            key = identity(spot)
            self.spots[key] = spot
            self.counts[key] += 1

    def report(self):
        """Return ops per step and the lines with most of them, None where no step was counted."""
        if not self.steps:
            return None
        top = [[self.spots[key], count / self.steps] for key, count in self.counts.most_common(20)]
        return {"ops_per_step": self.total / self.steps, "spots": top, "steps": self.steps}
