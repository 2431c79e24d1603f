"""When is a difference between two arms of runs larger than their noise?"""

import math
import statistics

#: Two-sided 95 % points of Student's t by degrees of freedom.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)

#: Runs that an arm needs before anything is said of it.
LEAST = 2
#: A half-width below this share of the speedup settles a change that makes no difference.
FINE = 0.03
#: Looking after every run whether an interval has left one finds chance more often than its 95 % say; a gain or a
#: loss is settled early only where it is at least this large.
CLEAR = 0.05
#: And where its size is known this well, as a half-width of the logarithm.
KNOWN = 0.4


def logarithms(baseline, changed):
    """Return the logarithm of the speedup of the means `changed` over `baseline`, and the half of its interval.

    The interval is Student's at 95 %, with one variance for both arms. Each needs `LEAST` runs.
    """
    base, new = ([math.log(value) for value in means] for means in (baseline, changed))
    means = statistics.mean(base), statistics.mean(new)
    squares = sum((value - mean) ** 2 for arm, mean in zip((base, new), means) for value in arm)
    freedom = len(base) + len(new) - 2
    error = math.sqrt(squares / freedom * (1 / len(base) + 1 / len(new)))
    return means[0] - means[1], _T[min(freedom, len(_T)) - 1] * error


def is_settled(baseline, changed):
    """Say whether more runs would not change what is said of `changed` beside `baseline`."""
    if min(len(baseline), len(changed)) < LEAST:
        return False
    difference, half = logarithms(baseline, changed)
    clear = abs(difference) - half > math.log(1 + CLEAR)
    return half < FINE or (clear and half < KNOWN)
