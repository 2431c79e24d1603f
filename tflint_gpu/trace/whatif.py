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
from tflint_gpu.trace.evidence import Spot, WhatIf
from tflint_gpu.trace.failures import failed
from tflint_gpu.trace.probe import noise
from tflint_gpu.trace.probe.arms import WORTHWHILE
from tflint_gpu.trace.probe.recipes import CHANGES as OF_INPUT

#: Changes of precision, by the least compute capability of a GPU that gains from them.
MIXED = {"mixed-bfloat16": 8, "mixed-float16": 7}

#: Batches that are tried where time is left, as long as the smaller ones still gain.
LARGEST = ("batch-x8", "batch-x16")

#: Every change that can be tried, in the order of trying.
CHANGES = (
    "cached-batch",
    *OF_INPUT,
    "workers-4",
    "batch-x2",
    "batch-x4",
    *LARGEST,
    "run-eagerly-off",
    "tf-function",
    "callbacks-off",
    "xla",
    "xla-off",
    "steps-per-execution-8",
    *MIXED,
)

#: Changes that a child can judge itself; others may apply to a run that makes its model or its steps anew.
INSIDE = frozenset({*OF_INPUT, "cached-batch", "workers-4", "run-eagerly-off", "tf-function", "callbacks-off"})

#: How the probe says that a change does not apply; that is no news.
NOT_HERE = "does not apply"

#: Runs of one change, and of the baseline, at most.
MOST = 5
#: How far runs of one program lie apart on a machine with little else to do, as a relative standard deviation, for
#: where a single run cannot show it.
APART = 0.1
#: A half-width beyond this multiple of the speedup says nothing at all.
WILD = 2.0


@dataclass
class Arm:
    """The runs of one change, or of the baseline where it has no name: one mean step time each, in ms."""

    change: str
    means: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    note: str = ""
    spots: tuple[Spot, ...] = ()
    rows: int | None = None
    memory: int | None = None


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
    if (fit and report["chains"]) or target["loop"]:
        found += OF_INPUT
    if fit and any(source["kind"] == "PyDataset" for source in report["python_input"]):
        found.append("workers-4")
    if target["batch"] or (fit and not report["chains"] and not report["python_input"]):
        found += ["batch-x2", "batch-x4"]
    if fit and facts.get("run_eagerly"):
        found.append("run-eagerly-off")
    if fit and report["callbacks"]:
        found.append("callbacks-off")
    if (fit and not facts.get("run_eagerly")) or target["functions"]:
        found.append("xla-off" if facts.get("jit") else "xla")
    if fit and not facts.get("run_eagerly") and report["steps_per_execution"] == 1:
        found.append("steps-per-execution-8")
    if "mixed_precision" in facts and not str(facts["mixed_precision"]).startswith("mixed"):
        found += [change for change, least in MIXED.items() if _capability(report) >= least][:1]
    return tuple(found)


def _capability(report: Report) -> float:
    """Return the compute capability of the first GPU, 0 without one."""
    gpus = report["environment"].get("gpus") or [{}]
    return float(gpus[0].get("compute_capability") or 0)


def compare(baseline: Arm, changed: Arm) -> WhatIf:
    """Return the speedup of `changed` over `baseline` with its 95 % interval.

    The interval is Student's over the logarithms of the runs' means, with one variance for both arms; with
    a single run it is that of the means' own errors and of runs that lie `APART`, and the note says so.
    """
    note = changed.note
    base, new = statistics.geometric_mean(baseline.means), statistics.geometric_mean(changed.means)
    if min(len(baseline.means), len(changed.means)) >= noise.LEAST:
        difference, half = noise.logarithms(baseline.means, changed.means)
    else:
        difference = math.log(base / new)
        half = 1.96 * math.hypot(mean_error(baseline.times), mean_error(changed.times), APART, APART)
        note = f"{note} one run; how far others lie apart is assumed ({APART:.0%})".strip()
    speedup = math.exp(difference)
    half = min(half, 50.0)
    low, high = math.exp(difference - half), math.exp(difference + half)
    return WhatIf(
        change=changed.change,
        step_ms=new,
        baseline_ms=base,
        speedup=speedup,
        repeats=len(changed.means),
        spread=(high - low) / 2 / speedup,
        low=low,
        high=high,
        note=note,
        spots=changed.spots,
        **_rates(baseline.rows, base, new),
        peak_bytes=changed.memory,
        baseline_peak_bytes=baseline.memory,
    )


def _rates(rows: int | None, base: float, new: float) -> dict[str, float | None]:
    """Return samples a second before and after, None where the rows of a batch are not known."""
    return {
        "samples_per_second": rows * 1000.0 / new if rows else None,
        "baseline_samples_per_second": rows * 1000.0 / base if rows else None,
    }


def mean_error(times: Sequence[float]) -> float:
    """Return the relative standard error of the mean of `times`; 1 where there are too few to tell."""
    if len(times) < 4:
        return 1.0
    mean = statistics.fmean(times)
    return statistics.stdev(times) / math.sqrt(len(times)) / mean if mean else 1.0


def settled(baseline: Arm, arm: Arm) -> bool:
    """Say whether more runs of `arm` would not change what is said of it."""
    return len(arm.means) >= MOST or noise.is_settled(baseline.means, arm.means)


def knee(results: Sequence[WhatIf], batch: int | None = None) -> str:
    """Say up to which size larger batches paid; `batch` is the size of the script's own, where it is known.

    "" where no two sizes were tried, none of them is a gain, or the noise hides where the growth ends.
    """
    sizes = {each.factor: each for each in results if each.factor > 1}
    if len(sizes) < 2 or not any(each.gain for each in sizes.values()):
        return ""
    best, hidden, low, high = 1, False, 1.0, 1.0
    for size, each in sorted(sizes.items()):
        if each.low > high * WORTHWHILE:
            best, hidden = size, False
        elif each.high < high * WORTHWHILE or each.speedup < low * WORTHWHILE:
            break
        else:
            hidden = True
        low, high = each.low, each.high
    if best == 1 or hidden:
        return ""
    told = ", ".join(f"{each.speedup:.2f} × at {_times(size)} the size" for size, each in sorted(sizes.items()))
    ends = "at least up to" if best == max(sizes) else "up to"
    rows = f", a batch of {batch * best}" if batch else ""
    return (
        f"what-if batch: samples a second grow {ends} {_times(best)} the size{rows} ({told}); "
        f"convergence is not tested"
    )


def _times(factor: int) -> str:
    return {2: "twice", 4: "four times"}.get(factor, f"{factor} times")


def trying(change: str, number: int, left: float) -> str:
    """Say which run is going on, and how much of the budget is left."""
    return f"what if: {change or 'the baseline again'} (run {number}, {max(0.0, left):.0f} s left)"


def says_nothing(result: WhatIf) -> bool:
    """Say whether the runs scatter so much that anything may be true; a clear gain of unknown size is one."""
    return result.spread > WILD and result.low <= 1.0 <= result.high


def _unsteady(result: WhatIf) -> str:
    runs = "one run" if result.repeats == 1 else f"{result.repeats} runs"
    return f"what-if {result.change}: {runs} too unsteady to tell anything; a larger --budget allows more"


def answered(change: str, arms: dict[str, dict[str, Any]]) -> bool:
    """Say whether a child that tried changes itself has told what there is to tell of `change`."""
    if change not in arms or not arms[""]["means"]:
        return False
    return change in INSIDE or NOT_HERE not in arms[change]["problem"]


def from_arms(arms: dict[str, dict[str, Any]]) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Return the results of the changes that a child tried itself, and sentences on those it could not."""
    base = arms.get("")
    if not base or not base["means"]:
        return (), ()
    baseline = Arm("", base["means"], base["times"], rows=base["rows"], memory=base["memory"])
    results, notes = [], []
    for change, raw in arms.items():
        if not change:
            continue
        if raw["error"]:
            notes.append(f"what-if {change}: {failed(change, raw['error'])}")
        elif raw["problem"]:
            if NOT_HERE not in raw["problem"]:
                notes.append(f"what-if {change}: {raw['problem']}")
        elif raw["means"]:
            spots = tuple(Spot(**spot) for spot in raw["spots"])
            arm = Arm(change, raw["means"], raw["times"], spots=spots, memory=raw["memory"])
            result = compare(baseline, arm)
            if says_nothing(result):
                notes.append(_unsteady(result))
            else:
                results.append(result)
        elif change not in LARGEST:
            notes.append(f"what-if {change}: not tried, the budget was spent")
    return tuple(results), tuple(notes)


def explore(
    changes: Iterable[str],
    first: Report,
    run: Callable[[str], Report | None],
    budget: float,
    progress: Callable[[str], None],
    longest: float = 0.0,
) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Try `changes` with `run(change)` ("" is the baseline) for at most about `budget` seconds.

    `first` is the baseline run that the evidence rests on. Arms take turns, so that a machine that slows down
    slows all of them; no run begins that will be over too late, if it lasts as long as the `longest` so far.
    Returns the results and sentences on changes that could not be tried.
    """
    baseline = Arm("", rows=first["track"]["batch_size"])
    _add(baseline, first, first)
    arms = [Arm(change) for change in changes]
    notes: list[str] = []
    began = time.monotonic()
    waiting = list(arms)
    out_of_time = False
    while waiting and not out_of_time:
        turn = [*waiting, baseline] if len(baseline.means) < MOST else list(waiting)
        for arm in turn:
            if time.monotonic() - began + longest > budget:
                out_of_time = True
                break
            progress(trying(arm.change, len(arm.means) + 1, budget - (time.monotonic() - began)))
            started = time.monotonic()
            problem = _add(arm, first, run(arm.change))
            longest = max(longest, time.monotonic() - started)
            if problem and arm is not baseline:
                notes.append(f"what-if {arm.change}: {problem}")
                arm.means.clear()
                waiting.remove(arm)
        waiting = [arm for arm in waiting if not settled(baseline, arm)]
    skipped = [arm.change for arm in waiting if not arm.means]
    if skipped:
        notes.append(f"what-if {', '.join(skipped)}: not tried, the budget was spent")
    results = [compare(baseline, arm) for arm in arms if arm.means]
    notes += [_unsteady(result) for result in results if says_nothing(result)]
    return tuple(result for result in results if not says_nothing(result)), tuple(notes)


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
    arm.means.append(statistics.fmean(arm.times))
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
