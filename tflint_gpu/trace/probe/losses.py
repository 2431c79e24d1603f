"""The losses of the first steps, by which two versions of a program are compared."""

from .places import identity


class Losses:
    """Keeps the first `count` losses of each place that trains; none where `count` is 0."""

    def __init__(self, count):
        self.count = count
        self.kept = {}

    def note(self, kind, spot, value, step=None):
        """Keep the loss after `step` (default: the next), in whatever form a step hands it out.

        What is no single number is left out.
        """
        if not self.count:
            return
        found = self.kept.setdefault((kind, identity(spot)), {"kind": kind, "spot": spot, "values": []})
        if len(found["values"]) >= self.count:
            return
        number = first_scalar(value)
        if number is not None:
            found["values"].append([len(found["values"]) + 1 if step is None else step, number])

    def report(self):
        """Return what was kept, as pairs of step and loss, in the order of the places' first steps."""
        return [found for found in self.kept.values() if found["values"]]


def first_scalar(value):
    """Return the first single number in a step's result, None where there is none to read now."""
    if isinstance(value, dict):
        value = value["loss"] if "loss" in value else list(value.values())
    if isinstance(value, (list, tuple)):
        return next((number for number in map(first_scalar, value) if number is not None), None)
    if isinstance(value, (bool, str, bytes)) or value is None:
        return None
    shape = getattr(value, "shape", ())
    try:
        return float(value) if len(shape) == 0 else None
    except Exception:  # a symbolic tensor, or nothing that is a number
        return None
