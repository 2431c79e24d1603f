"""Fixes on trial: the program as it is and with fixes of a rule, in turns, each in a process of its own.

The user's files stay as they are: the child is served other texts for them. Both versions draw the same random
numbers, so that their losses can be compared.
"""

from __future__ import annotations

import difflib
import math
import statistics
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tflint_gpu.trace import assemble, whatif
from tflint_gpu.trace.assemble import Report, step_times
from tflint_gpu.trace.evidence import Losses, Spot, VerifiedFix
from tflint_gpu.trace.failures import failed
from tflint_gpu.trace.launcher import Outcome, find_python, terminable
from tflint_gpu.trace.probe import noise
from tflint_gpu.trace.script import cells_of
from tflint_gpu.trace.session import Progress, TraceJob, Tracer, cells_for, longer

#: Runs of each version: whatever the budget, at least where there is time, and at most.
ALWAYS, LEAST, MOST = 2, 3, 6
#: Losses of so many steps are compared, and this relative difference is put down to rounding.
COMPARED, ROUNDING = 10, 1e-3
#: An epoch of at most so many steps is let pass: what a cache gives back comes after the first.
LONGEST_EPOCH = 300
#: Seconds after which a phase of a run makes do with fewer steps.
PATIENCE = 30.0
SEED = 20180
#: What is said of a program whose files other processes read too.
BYPASSED = "Python processes that the script starts ran the files as they are"


@dataclass(frozen=True)
class Trial:
    """Fixes of one rule to be tried: the places they stand at, and each changed file's bytes before and after."""

    code: str
    name: str
    safety: str
    spots: tuple[Spot, ...]
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


@dataclass
class _Arm:
    """The runs of one version of the program."""

    trial: Trial | None
    times: whatif.Arm
    losses: list[list[dict[str, Any]]] = field(default_factory=list)
    problem: str = ""
    #: Whether the program has started another Python, which read the files as they are.
    bypassed: bool = False


def past_first_epoch(job: TraceJob, epoch_steps: float | None) -> TraceJob | None:
    """Return the job with a warm-up that lets the first epoch pass; None where that is too long, or unknown."""
    if not epoch_steps or epoch_steps > LONGEST_EPOCH:
        return None
    return replace(job, warmup=max(job.warmup, int(epoch_steps) + 2))


def verify(
    job: TraceJob, trials: Sequence[Trial], progress: Progress, *, past: int = 0
) -> tuple[VerifiedFix, ...]:
    """Run the program with and without the fixes of each of `trials`, and say what they change.

    The first `past` steps are warm-up however short the program is. The budget of the job is for each of them,
    beyond the first runs. Raises `UserError` where the program itself cannot be run.
    """
    python = find_python(job.python)
    with terminable(), tempfile.TemporaryDirectory(prefix="tflint-gpu-verify-") as folder:
        return _Verification(Tracer(job, python, Path(folder), progress), Path(folder), past).run(trials)


class _Verification:
    """The runs of one verification; those of the program as it is are shared by all trials."""

    def __init__(self, tracer: Tracer, folder: Path, past: int) -> None:
        self.tracer = tracer
        self.folder = folder
        self.past = past
        self.plain = _Arm(None, whatif.Arm(""))
        self.first: Report | None = None
        self.extra: dict[str, Any] = {}
        self.longest = 0.0

    def run(self, trials: Sequence[Trial]) -> tuple[VerifiedFix, ...]:
        """Run the program as it is and with the fixes of each trial; return what came of each."""
        self._launch(self.plain)
        if self.first is not None and len(self.first["track"]["plain_ms"]) < assemble.ENOUGH:
            # Too few steps of the script's own: from now on its loop is prolonged, or its phases are shortened.
            self.extra = longer(self.first, self.tracer.job)
            self.plain = _Arm(None, whatif.Arm(""))
            self._launch(self.plain)
        arms = [_Arm(trial, whatif.Arm(trial.name)) for trial in trials]
        self._take_turns(arms, self.tracer.job.budget * len(arms))
        return tuple(_verdict(self.plain, arm) for arm in arms)

    def _take_turns(self, arms: Sequence[_Arm], budget: float) -> None:
        """Run the versions in turns, so that a machine that slows down slows all of them, until all is settled."""
        began = time.monotonic()
        waiting = list(arms)
        for turn in range(MOST):
            for arm in [self.plain, *waiting] if turn else waiting:
                late = turn >= ALWAYS and time.monotonic() - began + self.longest > budget
                if self.plain.problem or late:
                    return
                self._launch(arm)
            waiting = [arm for arm in waiting if not (arm.problem or _settled(self.plain, arm))]
            if not waiting:
                return

    def _launch(self, arm: _Arm) -> None:
        """Run one version once and note its times and losses, or why there are none."""
        count = len(arm.times.means) + 1
        told = f"with the fix of {arm.trial.name}" if arm.trial else "as it is"
        self.tracer.progress(f"verify: the program {told} (run {count})")
        began = time.monotonic()
        changes = self._served(arm.trial) if arm.trial else {}
        extra = dict(self.extra)
        if arm.trial and extra.get("target"):
            extra["target"] = _moved(extra["target"], arm.trial)
        same = {"lean": True, "seed": SEED, "losses": COMPARED, "seconds": PATIENCE, "past": self.past}
        outcome = self.tracer.launch(**{**extra, **changes, **same})
        self.longest = max(self.longest, time.monotonic() - began)
        arm.problem = self._note(arm, outcome)

    def _note(self, arm: _Arm, outcome: Outcome) -> str:
        """Keep the times and losses of a run; return why it cannot count, "" where it does."""
        report = outcome.report
        if report is None:
            last = next((line.strip() for line in reversed(outcome.tail) if line.strip()), "it said nothing")
            return f"the run failed ({textwrap.shorten(last, 120, placeholder=' …')})"
        if report["status"] == "crashed":
            return failed("fix" if arm.trial else "", report["error"])
        times = step_times(report)
        if len(times) < 2:
            return "the run had too few steps"
        if self.first is None:
            self.first = report
        arm.times.rows = self.first["track"]["batch_size"]
        factor = _rows(report) / _rows(self.first) if _rows(report) and _rows(self.first) else 1.0
        arm.times.times = [ms / factor for ms in times]
        arm.times.means.append(statistics.fmean(arm.times.times))
        arm.losses.append(report["losses"])
        arm.bypassed = arm.bypassed or bool(report.get("bypassed"))
        return ""

    def _served(self, trial: Trial) -> dict[str, Any]:
        """Return the settings by which a child sees the fixed files."""
        files = {}
        for number, (path, content) in enumerate(sorted(trial.after.items())):
            substitute = self.folder / f"{trial.code}-{number}"
            substitute.write_bytes(content)
            files[str(Path(path).absolute())] = str(substitute)
        served: dict[str, Any] = {"replaced": files}
        script = self.tracer.job.script
        if script.mode == "notebook":
            for path, raw in trial.after.items():
                if Path(path).absolute() == script.path:
                    served["cells"] = cells_for(replace(script, cells=cells_of(script.name, raw)))
        return served


def _rows(report: Report) -> float:
    return float(report["track"]["batch_size"] or 0)


def _settled(plain: _Arm, arm: _Arm) -> bool:
    """Say whether more runs would not change what is said of the fix."""
    runs = min(len(plain.times.means), len(arm.times.means))
    return runs >= MOST or (runs >= LEAST and noise.is_settled(plain.times.means, arm.times.means))


def _verdict(plain: _Arm, arm: _Arm) -> VerifiedFix:
    trial = arm.trial
    assert trial is not None
    verified = VerifiedFix(trial.code, trial.name, trial.safety, trial.spots)
    if plain.problem:
        return replace(verified, note=f"not tried: of the program as it is, {plain.problem}")
    if arm.problem:
        return replace(verified, note=f"the fixed program does not run: {arm.problem}")
    result = whatif.compare(plain.times, arm.times)
    losses = compare_losses(plain.losses, arm.losses)
    if whatif.says_nothing(result):
        return replace(
            verified, losses=losses, note="the runs were too unsteady to tell; a larger --budget allows more"
        )
    return replace(verified, result=result, losses=losses, note=BYPASSED if arm.bypassed else "")


def compare_losses(
    before: Sequence[Sequence[dict[str, Any]]], after: Sequence[Sequence[dict[str, Any]]]
) -> Losses | None:
    """Return how the losses of the first steps compare; None where one of the versions handed out none.

    Each run gives records ``{"kind", "values"}`` with pairs of step and loss as values, one for each place that
    trains; the first of them is compared.
    """
    ours, theirs = _by_step(before), _by_step(after)
    steps = sorted(set(ours) & set(theirs))
    if not steps:
        return None
    one = {step: statistics.fmean(ours[step]) for step in steps}
    other = {step: statistics.fmean(theirs[step]) for step in steps}
    difference = max(_apart(one[step], other[step]) for step in steps)
    noise = max(
        _apart(means[step], value)
        for runs, means in ((ours, one), (theirs, other))
        for step in steps
        for value in runs[step]
    )
    agree = difference <= max(ROUNDING, noise)
    return Losses(tuple(steps), tuple(one.values()), tuple(other.values()), difference, noise, agree)


def _apart(one: float, other: float) -> float:
    """Return the difference over the size of `one`; what is no number is like another such, and like no other."""
    if math.isfinite(one) and math.isfinite(other):
        return abs(one - other) / max(abs(one), 1e-8)
    return 0.0 if str(one) == str(other) else math.inf


def _by_step(runs: Sequence[Sequence[dict[str, Any]]]) -> dict[int, list[float]]:
    """Return the losses of all runs by step, of the steps that every run has."""
    firsts = [dict(map(tuple, places[0]["values"])) if places else {} for places in runs]
    shared = set.intersection(*map(set, firsts)) if firsts else set()
    return {step: [losses[step] for losses in firsts] for step in sorted(shared)}


def _moved(target: dict[str, Any], trial: Trial) -> dict[str, Any]:
    """Return the target of a run with its lines where they stand in the fixed files."""

    def spot(value: Any) -> Any:
        if not isinstance(value, dict) or value.get("path") not in trial.after or value.get("cell") is not None:
            return value
        path = value["path"]
        return {**value, "line": moved_line(trial.before[path], trial.after[path], value["line"])}

    return {
        key: [spot(each) for each in value] if isinstance(value, list) else spot(value)
        for key, value in target.items()
    }


def moved_line(before: bytes, after: bytes, line: int) -> int:
    """Return the line that `line` of `before` became in `after`; where it was changed, the one most like it."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    for _, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if not start <= line - 1 < end:
            continue
        if end - start == last - first:
            return first + line - start
        likeness = [difflib.SequenceMatcher(None, old[line - 1], text).ratio() for text in new[first:last]]
        return first + 1 + (likeness.index(max(likeness)) if likeness else 0)
    return line
