"""The arms of what-if runs, one change each, and which larger batches are worth trying."""

import statistics
from operator import attrgetter

from .experiments import Experiment

#: Why most changes of the list are not tried.
NOT_HERE = "the change does not apply to this training"
#: A batch twice as large that gives less than this times the samples a second is not worth its memory.
WORTHWHILE = 1.1
#: How many times as large as the script's own the batches of an arm are meant to be.
FACTOR = attrgetter("factor_asked")


class Arm:
    """One change, or the baseline where it has no name: the mean step of each of its blocks, in ms."""

    def __init__(self, run, change):
        self.change = change
        self.experiment = Experiment(run, change, run.target)
        self.means = []
        self.times = []
        self.factor = 1.0
        self.factor_asked = self.experiment.factor
        self.problem = ""
        self.error = None
        self.state = {}
        self.peaks = []
        self.memory = None
        self.spots = []

    @property
    def over(self):
        """Say whether this arm cannot be tried, or not again."""
        return bool(self.problem or self.error)

    def note_peak(self, peak, own):
        """Keep the most memory of one block; `own` says that it is of that block alone."""
        self.peaks.append(peak)
        if own and peak is not None:
            # What other changes leave behind is not this one's: the block that took least tells most.
            self.memory = min(each for each in self.peaks if each is not None)


def unfit(arm, arms, room):
    """Say why a larger batch is not tried, "" where it is: it has to pay, and to fit into memory.

    `arms` are all arms, the baseline first; what smaller batches gave and took is what there is to go by.
    """
    sizes = [each for each in arms if not each.change or each.factor_asked > 1]
    smaller = max((each for each in sizes if each.factor_asked < arm.factor_asked), key=FACTOR, default=None)
    if smaller is None or arm.means:
        return ""
    if smaller.over:
        return smaller.problem or "not tried, since %s did not run" % smaller.change
    if not grows(smaller, arms):
        return NOT_HERE
    needs = need(arm.factor_asked, smaller, arms[0], room.on_gpu)
    if needs is None or room.limit is None or needs <= room.limit:
        return ""
    return "may need %.1f GB of memory, there are %.1f" % (needs / 1e9, room.limit / 1e9)


def grows(arm, arms):
    """Say whether the batches of `arm` gave more samples a second than those half as large."""
    halves = [each for each in arms if each.factor_asked > 1 and each.factor_asked * 2 == arm.factor_asked]
    known = [statistics.mean(half.means) for half in halves if half.means and arm.means]
    return all(ms > statistics.mean(arm.means) * WORTHWHILE for ms in known)


def need(factor, smaller, baseline, on_gpu):
    """Return the bytes that batches `factor` times as large take, by those of `smaller`; None where unknown."""
    base, known = (arm.peaks[0] if arm.peaks else None for arm in (baseline, smaller))
    if base is None or known is None:
        return None
    if smaller is baseline:
        # A GPU that is full says so, and nothing is lost; a full host ends the program.
        return None if on_gpu else base * factor
    return base + (known - base) / (smaller.factor_asked - 1) * (factor - 1)
