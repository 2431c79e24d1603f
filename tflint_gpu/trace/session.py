"""One trace from start to end: baseline, what-if runs, profile, evidence."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflint_gpu import __version__
from tflint_gpu.errors import UserError
from tflint_gpu.trace import assemble, whatif
from tflint_gpu.trace.assemble import Report
from tflint_gpu.trace.chains import locate_stages
from tflint_gpu.trace.evidence import SCHEMA, Evidence, GraphLoop, Placement, Samples, WhatIf
from tflint_gpu.trace.failures import after_steps, at, refuse
from tflint_gpu.trace.kept import kept, refuse_others
from tflint_gpu.trace.launcher import Outcome, find_python, launch, terminable
from tflint_gpu.trace.script import Script
from tflint_gpu.trace.tree import changed, look

if TYPE_CHECKING:
    from tflint_gpu.trace.profile import ProfileSummary

Progress = Callable[[str], None]


def silent(_text: str) -> None:
    """Tell nobody."""


#: Kinds of step that are one call of the user's, which can be made again.
REPEATED = ("train_on_batch", "step function")

#: Steps that are only timed, and seconds after which a phase makes do with fewer.
PLAIN_STEPS = 20
PHASE_SECONDS = 8.0
#: Seconds of work with TensorFlow in which a program without steps can be profiled by time.
SHORTEST = 1.0


@dataclass(frozen=True)
class TraceJob:
    """What to trace and how. Times in seconds; `changes` are what-if runs to make, None stands for all."""

    script: Script
    arguments: tuple[str, ...] = ()
    python: str = "python3"
    warmup: int = 10
    window: int = 20
    deadline: float = 120.0
    changes: tuple[str, ...] | None = ("cached-batch",)
    budget: float = 90.0
    show_output: bool = False
    profile_folder: Path | None = None


class Tracer:
    """The runs of one trace; every child gets a folder of its own below `work`."""

    def __init__(
        self, job: TraceJob, python: str, work: Path, progress: Progress, live: Progress = silent
    ) -> None:
        self.job = job
        self.python = python
        self.work = work
        self.progress = progress
        self.live = live
        self.runs = 0

    def launch(self, **changes: Any) -> Outcome:
        """Run the script once, with the job's settings but for `changes`."""
        self.runs += 1
        job = self.job
        script = job.script
        settings: dict[str, Any] = {
            "mode": script.mode,
            "script": str(script.path),
            "module": script.module,
            "argv": list(job.arguments),
            "cells": cells_for(script),
            "roots": [str(root) for root in script.roots],
            "start": str(Path.cwd()),
            "warmup": job.warmup,
            "plain": PLAIN_STEPS,
            "window": job.window,
            "seconds": PHASE_SECONDS,
            **changes,
        }
        return launch(
            settings,
            self.python,
            script.folder,
            self.work / f"run{self.runs}",
            deadline=job.deadline,
            show_output=job.show_output,
            told_of=lambda told: self.live(whatif.trying(told["change"], told["run"], told["left"])),
        )


def cells_for(script: Script) -> list[dict[str, Any]]:
    """Return the cells of a notebook as a child is given them, none for anything else."""
    return [
        {"filename": f"{script.path}#cell-{cell.number}", "cell": cell.number, "source": cell.source}
        for cell in script.cells
    ]


def trace_script(job: TraceJob, progress: Progress, live: Progress = silent) -> Evidence:
    """Trace a script and return the evidence; `progress` is told in a few words what is going on.

    `live` is told what is tried at the moment, and how many seconds are left for it.

    Raises `UserError` where the script cannot be run, shows no training step, or the disk takes no more.
    """
    python = find_python(job.python)
    if job.profile_folder is not None:
        refuse_others(job.profile_folder)
    try:
        with terminable(), tempfile.TemporaryDirectory(prefix="tflint-gpu-") as work:
            return _trace(job, python, Path(work), progress, live)
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        raise UserError(f"the trace could not be written{where}: {problem.strerror}") from problem


def _trace(job: TraceJob, python: str, work: Path, progress: Progress, live: Progress) -> Evidence:
    began = time.monotonic()
    tracer = Tracer(job, python, work, progress, live)
    before = look(Path.cwd())
    baseline = _baseline(tracer)
    if baseline.first["status"] == "crashed":
        # At once and in every format: the steps that were measured may not be those that were meant.
        progress(after_steps(baseline.first["error"]))
    best = baseline.best
    evidence = _evidence(job, baseline)
    if best["track"] is not None:
        results, notes = _what_if(tracer, baseline)
        notes = tuple(filter(None, (*notes, whatif.knee(results, best["track"]["batch_size"]))))
        evidence = replace(evidence, what_if=results, notes=(*evidence.notes, *notes))
    files = assemble.written((baseline.first, best), changed(before, look(Path.cwd())))
    evidence = replace(evidence, notes=(*files, *evidence.notes))
    _keep_profile(best, job.profile_folder)
    runs = "1 run" if tracer.runs == 1 else f"{tracer.runs} runs"
    progress(f"traced in {time.monotonic() - began:.0f} s, {runs}")
    return evidence


@dataclass(frozen=True)
class Baseline:
    """The run of the script as it is, the run that its window is from, and what is special about that.

    `arms` are the changes that were tried in the process of `best`, which lasted `took` seconds
    with them.
    """

    first: Report
    best: Report
    note: str
    arms: dict[str, dict[str, Any]]
    samples: Samples | None
    took: float = 0.0

    @property
    def spent(self) -> float:
        """The seconds that these changes have taken."""
        return float(self.arms.get("", {}).get("spent", 0.0))


def _baseline(tracer: Tracer) -> Baseline:
    """Run the script as it is and, where it was too short for a window, once more with its loop prolonged."""
    job = tracer.job
    tracer.progress(f"running {job.script.name}")
    arms = whatif.CHANGES if job.changes is None else job.changes
    trials: dict[str, Any] = {"arms": list(arms), "budget": job.budget} if arms else {}
    began = time.monotonic()
    outcome = tracer.launch(**trials)
    report = outcome.report
    if report is None or (report.get("track") is None and report.get("status") != "time"):
        by_time = _by_time(tracer, report)
        if by_time is None:
            raise refuse(job.script.name, outcome, job.deadline)
        return by_time
    if assemble.complete(report) or report["status"] == "deadline":
        took = time.monotonic() - began
        return Baseline(report, report, _note_on(report, job), outcome.arms or {}, outcome.samples, took)
    tracer.progress(f"{report['track']['n']} steps were too few for a window; running it once more")
    began = time.monotonic()
    second = tracer.launch(**longer(report, job), **trials)
    again = second.report
    if again is None or again.get("track") is None or len(again["track"]["profiled_ms"]) < 1:
        return Baseline(report, report, _note_on(report, job), {}, outcome.samples)
    note = _note_on(again, job, natural=report["track"]["n"])
    return Baseline(report, again, note, second.arms or {}, second.samples, time.monotonic() - began)


def _by_time(tracer: Tracer, report: Report | None) -> Baseline | None:
    """Profile the middle third of a script that ended well without a step, None where it was over too soon."""
    if report is None or report["status"] != "ended" or report["exit"] or report["processes"]:
        return None
    if report["seconds_of_tensorflow"] < SHORTEST:
        return None
    tracer.progress("no training step was seen; running it once more to profile it by time")
    outcome = tracer.launch(third=report["seconds_of_tensorflow"] / 3)
    again = outcome.report
    if again is None or again["status"] != "time":
        return None
    return Baseline(again, again, "", {}, outcome.samples)


def longer(report: Report, job: TraceJob) -> dict[str, Any]:
    """Return the settings of a second run of a script whose own steps were too few for a window.

    Loops of ``fit`` and over datasets go on past their end, single calls are repeated; where neither is possible
    warm-up and window are shortened to what the first run had.
    """
    track = report["track"]
    count = track["n"]
    target = whatif.target_of(report)
    if track["kind"] in ("fit", "dataset loop"):
        return {"extend": True, "target": target}
    if track["kind"] in REPEATED and count < 12:
        return {"repeat": True, "target": target, "warmup": 5, "plain": 10, "window": 10}
    return {"target": target, **shortened(count, job)}


def shortened(count: int, job: TraceJob) -> dict[str, int]:
    """Return phases that fit into `count` steps."""
    warmup = max(1, min(job.warmup, count // 5))
    plain = max(1, (count - warmup) // 2)
    return {"warmup": warmup, "plain": plain, "window": max(1, min(job.window, count - warmup - plain - 1))}


def _note_on(report: Report, job: TraceJob, natural: int | None = None) -> str:
    """Say in a sentence what is special about the window of a run, "" where nothing is."""
    if report["status"] == "deadline":
        return f"The deadline of {job.deadline:g} s came before the window was full{at(report.get('hung'))}."
    if natural is not None and assemble.complete(report) and report["track"]["n"] > natural + 1:
        single = report["track"]["kind"] in REPEATED
        how = "its call was repeated" if single else "its loop was prolonged"
        return f"The script's own {natural} steps were too few to measure: {how}."
    if natural is not None:
        return f"The script has only {natural} steps: warm-up and window were shortened."
    if not assemble.complete(report):
        return "The script ended before the window was full."
    return ""


def _evidence(job: TraceJob, baseline: Baseline) -> Evidence:
    first, best = baseline.first, baseline.best
    profile, problems = _profile(best)
    if first["status"] == "crashed":
        problems.append(after_steps(first["error"]))
    problems.extend(assemble.unfollowed(first["processes"]))
    reports = (first, best)
    window = assemble.window_of(best, baseline.note, baseline.arms)
    facts = assemble.facts_of(first, best)
    placed, loops = _placements(reports, profile, bool(facts.get("keras_auto_jit")))
    script = job.script
    sources = {**first["sources"], **best["sources"]}
    profiled = profile.notes if profile else ()
    called = ("-m", script.module) if script.mode == "module" else (script.name,)
    return Evidence(
        schema=SCHEMA,
        tool=f"tflint-gpu {__version__}",
        made_at=assemble.now(),
        command=(*called, *job.arguments),
        environment=assemble.environment_of(best, profile.device if profile else None),
        window=window,
        steps=assemble.per_step(profile.steps, best["steps_per_execution"]) if profile else (),
        sources=sources,
        lines=assemble.lines_of(sources),
        executed={path: tuple(lines) for path, lines in first["executed"].items()},
        pipelines=locate_stages(profile.stages, [*best["chains"], *first["chains"]]) if profile else (),
        python_input=assemble.inputs_of(best) or assemble.inputs_of(first),
        functions=assemble.functions_of(reports),
        callbacks=assemble.callbacks_of(best, window),
        keras_calls=assemble.calls_of(first),
        eager=assemble.eager_of(reports, profile.eager if profile else None),
        placements=placed,
        loops=loops,
        copies=profile.copies if profile else None,
        kernels=profile.kernels if profile else None,
        gpus=tuple(device.use for device in profile.devices) if profile else (),
        memory=profile.memory if profile else None,
        samples=baseline.samples,
        muted=tuple(sorted({*first["muted"], *best["muted"]})),
        notes=tuple(dict.fromkeys((*problems, *first["notes"], *best["notes"], *profiled))),
        facts=facts,
    )


def _profile(report: Report) -> tuple[ProfileSummary | None, list[str]]:
    """Read the profile of a run; a sentence where there is none to read."""
    if report["profile_problem"]:
        return None, [f"No breakdown: {report['profile_problem']}."]
    if report["profile"] is None:
        return None, ["No breakdown: the run ended before a step was profiled."]
    from tflint_gpu.trace.profile import read_profile

    try:
        return read_profile(Path(report["profile"])), []
    except UserError as problem:
        return None, [f"No breakdown: {problem}"]


def _placements(
    reports: tuple[Report, ...], profile: ProfileSummary | None, jit: bool
) -> tuple[tuple[Placement, ...], tuple[GraphLoop, ...]]:
    """Return where the ops ran or would run, and the loops among them; `jit`: Keras would compile it on a GPU."""
    from tflint_gpu.trace.placement import graph_loops, placements

    records = reports[-1]["placements"] or reports[0]["placements"]
    steps, plain = profile.steps if profile else (), assemble.step_times(reports[-1])
    version = reports[-1]["environment"].get("tensorflow")
    found = placements(records, profile, keras_auto_jit=jit, tensorflow=version)
    loops = graph_loops(records, profile)
    return assemble.as_plain(found, steps, plain), assemble.as_plain(loops, steps, plain)


def _what_if(tracer: Tracer, baseline: Baseline) -> tuple[tuple[WhatIf, ...], tuple[str, ...]]:
    """Return the what-if results that the baseline brought along, and make the runs that it could not."""
    job, report = tracer.job, baseline.best
    done, notes = whatif.from_arms(baseline.arms)
    possible = whatif.applicable(report)
    wanted = [change for change in possible if job.changes is None or change in job.changes]
    wanted = [change for change in wanted if not whatif.answered(change, baseline.arms)]
    budget = job.budget - baseline.spent
    if not wanted:
        return done, notes
    extra = longer(report, job)
    extra = {"extend": True, **extra, "lean": True}

    def run(change: str) -> Report | None:
        return tracer.launch(**extra, change=change).report

    results, more = whatif.explore(wanted, report, run, budget, tracer.live, baseline.took - baseline.spent)
    return (*done, *results), (*notes, *more)


def _keep_profile(report: Report, folder: Path | None) -> None:
    """Move the profile beside the evidence."""
    if folder is not None and report["profile"] is not None:
        with kept(folder) as draft:
            shutil.move(report["profile"], draft)
