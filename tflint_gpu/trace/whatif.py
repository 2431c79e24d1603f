"""What-if runs: one change each, in a process of its own, repeated until the difference exceeds the noise."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tflint_gpu.trace.assemble import Report, step_times
from tflint_gpu.trace.chains import family
from tflint_gpu.trace.evidence import WhatIf
from tflint_gpu.trace.failures import failed

#: Every change that can be tried, in the order of trying.
CHANGES = ("cached-batch", "batch-x2", "batch-x4", "xla", "xla-off", "steps-per-execution-8")

#: How the probe says that a change does not apply; that is no news.
NOT_HERE = "does not apply"

#: Runs of one change, and of the baseline, at most and at least.
MOST, LEAST = 5, 2
#: A half-width below this share of the speedup settles a change that makes no difference.
FINE = 0.03
#: A half-width beyond this multiple of the speedup says nothing at all.
WILD = 2.0
#: Two-sided 95 % points of Student's t by degrees of freedom.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass
class Arm:
    """The runs of one change, or of the baseline where it has no name: one median step time each, in ms."""

    change: str
    medians: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    note: str = ""


def target_of(report: Report) -> dict[str, Any]:
    """Return what a change must know of the training: its line, its dataset's batching, its functions."""
    track = report["track"]
    loops = [each["spot"] for each in report["tracks"] if each["kind"] == "dataset loop" and each["trained"]]
    chain = report["chains"][0] if report["chains"] else []
    batch = next((stage["spot"] for stage in chain if family(stage["op"]).endswith("batch")), None)
    trains = [raw["spot"] for raw in report["functions"] if raw["trains"] and raw["spot"]]
    return {
        "kind": track["kind"],
        "spot": track["spot"],
        "loop": track["spot"] if track["kind"] == "dataset loop" else (loops[0] if loops else None),
        "batch": batch,
        "functions": trains,
    }


def applicable(report: Report) -> tuple[str, ...]:
    """Return the changes that can be made to the training that `report` saw."""
    target = target_of(report)
    facts = report.get("facts") or {}
    fit = target["kind"] == "fit"
    found = []
    if fit or target["loop"]:
        found.append("cached-batch")
    if target["batch"] or (fit and not report["chains"] and not report["python_input"]):
        found += ["batch-x2", "batch-x4"]
    if (fit and not facts.get("run_eagerly")) or target["functions"]:
        found.append("xla-off" if facts.get("jit") else "xla")
    if fit and not facts.get("run_eagerly") and report["steps_per_execution"] == 1:
        found.append("steps-per-execution-8")
    return tuple(found)


def compare(baseline: Arm, changed: Arm) -> WhatIf:
    """Return the speedup of `changed` over `baseline` with its 95 % interval.

    The interval is Student's over the logarithms of the runs' medians, with one variance for both arms; with
    a single run it is that of the medians' own errors, and the note says so.
    """
    base = [math.log(value) for value in baseline.medians]
    new = [math.log(value) for value in changed.medians]
    difference = statistics.fmean(base) - statistics.fmean(new)
    freedom = len(base) + len(new) - 2
    note = changed.note
    if min(len(base), len(new)) >= LEAST:
        squares = sum((value - statistics.fmean(arm)) ** 2 for arm in (base, new) for value in arm)
        error = math.sqrt(squares / freedom * (1 / len(base) + 1 / len(new)))
        half = _T[min(freedom, len(_T)) - 1] * error
    else:
        half = 1.96 * math.hypot(median_error(baseline.times), median_error(changed.times))
        note = f"{note} A single run: the interval is that of the steps within it.".strip()
    speedup = math.exp(difference)
    half = min(half, 50.0)
    low, high = math.exp(difference - half), math.exp(difference + half)
    return WhatIf(
        change=changed.change,
        step_ms=math.exp(statistics.fmean(new)),
        baseline_ms=math.exp(statistics.fmean(base)),
        speedup=speedup,
        repeats=len(new),
        spread=(high - low) / 2 / speedup,
        low=low,
        high=high,
        note=note,
    )


def median_error(times: Sequence[float]) -> float:
    """Return the relative standard error of the median of `times`; 1 where there are too few to tell."""
    if len(times) < 4:
        return 1.0
    low, middle, high = statistics.quantiles(times, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(times)) / middle if middle else 1.0


def settled(baseline: Arm, arm: Arm) -> bool:
    """Say whether more runs of `arm` would not change what is said of it."""
    if len(arm.medians) >= MOST:
        return True
    if min(len(arm.medians), len(baseline.medians)) < LEAST:
        return False
    result = compare(baseline, arm)
    return result.low > 1.0 or result.high < 1.0 or result.spread < FINE


def _unsteady(result: WhatIf) -> str:
    runs = "one run" if result.repeats == 1 else f"{result.repeats} runs"
    return f"what-if {result.change}: {runs} too unsteady to tell anything; a larger --budget allows more"


def answered(change: str, arms: dict[str, dict[str, Any]]) -> bool:
    """Say whether a child that tried changes itself has told what there is to tell of `change`."""
    if change not in arms or not arms[""]["medians"]:
        return False
    return NOT_HERE not in arms[change]["problem"]


def from_arms(arms: dict[str, dict[str, Any]]) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Return the results of the changes that a child tried itself, and sentences on those it could not."""
    base = arms.get("")
    if not base or not base["medians"]:
        return (), ()
    baseline = Arm("", base["medians"], base["times"])
    results, notes = [], []
    for change, raw in arms.items():
        if not change:
            continue
        if raw["error"]:
            notes.append(f"what-if {change}: {failed(change, raw['error'])}")
        elif raw["problem"]:
            if NOT_HERE not in raw["problem"]:
                notes.append(f"what-if {change}: {raw['problem']}")
        elif raw["medians"]:
            result = compare(baseline, Arm(change, raw["medians"], raw["times"]))
            if result.spread > WILD:
                notes.append(_unsteady(result))
            else:
                results.append(result)
        else:
            notes.append(f"what-if {change}: not tried, the budget was spent")
    return tuple(results), tuple(notes)


def explore(
    changes: Iterable[str],
    first: Report,
    run: Callable[[str], Report | None],
    budget: float,
    progress: Callable[[str], None],
) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Try `changes` with `run(change)` ("" is the baseline) for at most about `budget` seconds.

    `first` is the baseline run that the evidence rests on. Arms take turns, so that a machine that slows down
    slows all of them. Returns the results and sentences on changes that could not be tried.
    """
    baseline = Arm("")
    _add(baseline, first, first)
    arms = [Arm(change) for change in changes]
    notes: list[str] = []
    began, longest = time.monotonic(), 0.0
    waiting = list(arms)
    out_of_time = False
    while waiting and not out_of_time:
        turn = [*waiting, baseline] if len(baseline.medians) < MOST else list(waiting)
        for arm in turn:
            if time.monotonic() - began + longest > budget:
                out_of_time = True
                break
            progress(f"what if: {arm.change or 'the baseline again'} (run {len(arm.medians) + 1})")
            started = time.monotonic()
            problem = _add(arm, first, run(arm.change))
            longest = max(longest, time.monotonic() - started)
            if problem and arm is not baseline:
                notes.append(f"what-if {arm.change}: {problem}")
                arm.medians.clear()
                waiting.remove(arm)
        waiting = [arm for arm in waiting if not settled(baseline, arm)]
    skipped = [arm.change for arm in waiting if not arm.medians]
    if skipped:
        notes.append(f"what-if {', '.join(skipped)}: not tried, the budget of {budget:g} s was spent")
    results = [compare(baseline, arm) for arm in arms if arm.medians]
    notes += [_unsteady(result) for result in results if result.spread > WILD]
    return tuple(result for result in results if result.spread <= WILD), tuple(notes)


def _add(arm: Arm, first: Report, report: Report | None) -> str:
    """Add one run to `arm`, per step of the original size; return why it cannot count, "" where it does."""
    if report is None:
        return "the run failed"
    if report["status"] == "crashed":
        return failed(arm.change, report["error"])
    if arm.change and not report["applied"]:
        return "the change does not apply to this training"
    times = step_times(report)
    if len(times) < 2:
        return "the run had too few steps"
    factor = _rows_factor(arm.change, first, report)
    if factor is None:
        return "the batch stayed what it was"
    arm.times = [ms / factor for ms in times]
    arm.medians.append(statistics.median(arm.times))
    return ""


def _rows_factor(change: str, first: Report, report: Report) -> float | None:
    """Return how many original steps one step of a larger batch is worth; None where the batch did not grow."""
    if not change.startswith("batch-x"):
        return 1.0
    factor = float(change.removeprefix("batch-x"))
    before, after = first["track"]["batch_size"], report["track"]["batch_size"]
    if before and after:
        factor = after / before
    return factor if factor > 1.2 else None
