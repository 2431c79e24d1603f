"""Turns the raw reports of the probe into evidence."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tflint_gpu.trace.evidence import (
    CallbackCost,
    Device,
    Eager,
    Environment,
    GraphLoop,
    KerasCall,
    Placement,
    PythonInput,
    Spot,
    Step,
    TracedFunction,
    Window,
)
from tflint_gpu.trace.follow import remember

#: Kinds of step of the probe that are calls of something of the user's own.
_OWN_STEPS = {"optimizer": "step function", "gradient": "step function"}

#: Fewer steps than this, plain or profiled, are no window.
ENOUGH = 5

Report = dict[str, Any]
#: What a profile gives a time per step.
Timed = TypeVar("Timed", Placement, GraphLoop)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0).isoformat()


def spot_of(raw: dict[str, Any] | None) -> Spot | None:
    """Return a raw spot as a `Spot`."""
    return None if raw is None else Spot(raw["path"], raw["line"], raw.get("cell"), raw.get("function", ""))


def complete(report: Report) -> bool:
    """Say whether a run had a whole window: enough steps both plain and under the profiler."""
    track = report["track"]
    if report["status"] == "time":
        return True
    return bool(track) and len(track["plain_ms"]) >= ENOUGH and len(track["profiled_ms"]) >= ENOUGH


def step_times(report: Report) -> list[float]:
    """Return the milliseconds of the plain steps of a run, or of the best there are where it was too short."""
    track = report["track"]
    if track is None:
        return []
    plain: list[float] = track["plain_ms"]
    if len(plain) >= 2 or not track["warmup_ms"]:
        return plain or track["profiled_ms"]
    late = track["warmup_ms"][len(track["warmup_ms"]) // 3 or 1 :] if len(track["warmup_ms"]) > 1 else []
    return plain + late or track["profiled_ms"] or track["warmup_ms"]


def spread(times: Sequence[float]) -> float:
    """Return the interquartile range over the median, 0 for fewer than four times."""
    if len(times) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle if middle else 0.0


def window_of(report: Report, note: str, arms: dict[str, dict[str, Any]]) -> Window | None:
    """Return how the steps of a run were found and how steady they are.

    Where changes were tried in the same process (`arms`), the steps of their baseline are plain steps too.
    """
    if report["status"] == "time":
        seconds = report["seconds"]
        note = f"No step was seen: {seconds:.1f} s of the program were profiled by time."
        return Window("time", 0, 0, seconds * 1000.0, 0.0, note=note)
    track = report["track"]
    times = step_times(report)
    if track is None or not times:
        return None
    mean = statistics.fmean(times)
    if arms.get("", {}).get("means") and complete(report):
        times = [*times, *arms[""]["times"]]
    return Window(
        seen_as=_OWN_STEPS.get(track["kind"], track["kind"]),
        warmup_steps=len(track["warmup_ms"]),
        steps=len(times),
        step_ms=statistics.median(times),
        spread=spread(times),
        spot=spot_of(track["spot"]),
        batch_size=track["batch_size"],
        note=note,
        mean_ms=mean,
    )


def lines_of(sources: Mapping[str, str]) -> dict[str, str]:
    """Return what stands for the lines of those files of `sources` that still have the digest stated there."""
    found: dict[str, str] = {}
    for path, digest in sources.items():
        try:
            raw = Path(path).read_bytes()
        except OSError:
            continue
        if hashlib.blake2b(raw, digest_size=16).hexdigest() == digest:
            found.update(remember(path, raw))
    return found


def facts_of(first: Report, best: Report) -> dict[str, Any]:
    """Return the facts of a script: the `first` run saw all of it, the `best` one has the window.

    The two are one report, but for a short script, whose second run prolongs one loop.
    """
    facts = {**(first.get("facts") or {}), **(best.get("facts") or {})}
    facts["retraced"] = (first.get("facts") or {}).get("retraced", 0)
    facts["steps_per_execution"] = best["steps_per_execution"]
    if first["epoch_gaps"]:
        facts["epoch_gap_ms"] = statistics.median_high(first["epoch_gaps"])
        facts["epoch_steps"] = statistics.median_high(first["epoch_steps"])
    facts.update(epochs_of(first) or epochs_of(best))
    validated = first["validation_ms"] or best["validation_ms"]
    if validated is not None:
        facts["validation_ms"] = validated
    if first is not best and (own := own_step(first)) is not None:
        facts["own_step_ms"] = own
    return facts


def epochs_of(report: Report) -> dict[str, float]:
    """Return the length of an epoch in steps and the milliseconds of its first step; nothing for one epoch."""
    starts = report["track"]["starts"] if report["track"] else []
    if not starts:
        return {}
    lengths = [after - before for (before, _), (after, _) in pairwise([[0, 0.0], *starts])]
    return {
        "epoch_steps": statistics.median(lengths),
        "epoch_start_ms": statistics.median(ms for _, ms in starts),
    }


def own_step(report: Report) -> float | None:
    """Return the median step of a short script as it is, without the first two, which trace everything.

    A loop that is prolonged meets the same shapes again, so what new ones cost shows only here.
    """
    track = report["track"]
    times = [*track["warmup_ms"], *track["plain_ms"], *track["profiled_ms"]][2:] if track else []
    return statistics.median(times) if len(times) >= 3 else None


def environment_of(report: Report, device: Device | None) -> Environment:
    """Return versions and machine; `device` is what the profile says it ran on."""
    raw = report["environment"]
    gpus = raw.get("gpus") or []
    if gpus and device is not None and device.kind == "gpu":
        known = gpus[0]
        device = Device(
            known["name"] or device.name,
            "gpu",
            device.traced,
            len(gpus),
            device.memory_bytes,
            known["compute_capability"] or device.compute_capability,
        )
    elif gpus:
        device = Device(gpus[0]["name"], "gpu", False, len(gpus), None, gpus[0]["compute_capability"])
    return Environment(
        tensorflow=raw.get("tensorflow"),
        keras=raw.get("keras"),
        backend=raw.get("backend"),
        python=raw.get("python"),
        platform=raw.get("platform"),
        cpus=raw.get("cpus"),
        cuda_build=raw.get("cuda_build"),
        device=device or Device("CPU", "cpu", traced=True),
    )


def functions_of(reports: Iterable[Report]) -> tuple[TracedFunction, ...]:
    """Return the traced functions, of the first report that saw each."""
    found: dict[tuple[Any, ...], TracedFunction] = {}
    for report in reports:
        for raw in report["functions"]:
            key = (raw["name"], str(raw["spot"]), str(raw["caller"]) if raw["spot"] is None else "")
            found.setdefault(
                key,
                TracedFunction(
                    name=raw["name"],
                    traces=raw["traces"],
                    retraces_after_warmup=raw["late"],
                    calls=raw["calls"],
                    jit=raw["jit"],
                    spot=spot_of(raw["spot"]),
                    caller=spot_of(raw["caller"]),
                    causes=tuple(raw["causes"]),
                    trace_ms=raw["trace_ms"],
                    retrace_ms=raw["retrace_ms"],
                ),
            )
    return tuple(found.values())


def inputs_of(report: Report) -> tuple[PythonInput, ...]:
    """Return the Python code that makes input, with its time per step."""
    return tuple(
        PythonInput(raw["kind"], raw["name"], raw["ms_per_step"], raw["calls"], spot_of(raw["spot"]))
        for raw in report["python_input"]
        if raw["ms_per_step"] is not None
    )


def callbacks_of(report: Report, window: Window | None = None) -> tuple[CallbackCost, ...]:
    """Return the user's Keras callbacks with their cost in the step of `window`, which trials may have moved."""
    times = step_times(report) if window else []
    factor = window.step_ms / statistics.median(times) if window and times and statistics.median(times) else 1.0
    return tuple(
        CallbackCost(raw["name"], raw["ms_per_step"] * factor, raw["ms_per_epoch"], spot_of(raw["spot"]))
        for raw in report["callbacks"]
    )


def calls_of(report: Report) -> tuple[KerasCall, ...]:
    """Return the calls of Keras' entry points by line; the first call, which traces, is left out of the median."""
    found = []
    for raw in report["keras_calls"]:
        times = raw["ms"][1:] or raw["ms"] or [0.0]
        rows = [each for each in raw["rows"] if each is not None]
        found.append(
            KerasCall(
                method=raw["method"],
                calls=raw["calls"],
                ms=statistics.median(times),
                spot=spot_of(raw["spot"]),
                rows=int(statistics.median(rows)) if rows else None,
                inside=raw["inside"],
                share=raw["share"],
            )
        )
    return tuple(found)


def as_plain(measured: Sequence[Timed], steps: Sequence[Step], plain: Sequence[float]) -> tuple[Timed, ...]:
    """Return `measured` with their times as parts of a plain step: profiled steps are longer than those.

    Medians of both: a step in which Python's collector comes by makes no op shorter.
    """
    profiled = statistics.median(step.step_ms for step in steps) if steps else 0.0
    if not profiled or not plain:
        return tuple(measured)
    factor = min(1.0, statistics.median(plain) / profiled)
    return tuple(each if each.ms is None else replace(each, ms=each.ms * factor) for each in measured)


def written(reports: Iterable[Report], seen: Iterable[str] = ()) -> Iterator[str]:
    """Yield a sentence on the files that were written by other means than those that are muted, if any.

    `seen` are those that changed below the folder of the trace, whoever wrote them; the reports name others that
    the script's Python code opened.
    """
    opened = (name for report in reports for name in report["written"])
    names = list(dict.fromkeys((*opened, *seen)))
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        yield (
            f"Written during the trace, by the script or by another program, and not held back: "
            f"{', '.join(names[:5])}{more}."
        )


def unfollowed(processes: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on the processes that the script started, if any; `processes` says by what."""
    if started := ", ".join(processes):
        yield f"What happens in the processes that the script starts ({started}) is not followed."


def eager_of(reports: Iterable[Report], profiled: Eager | None) -> Eager | None:
    """Return the eager ops: their number and share from the profile, the user's lines from the warm-up."""
    raw = next((report["eager"] for report in reports if report["eager"]), None)
    if raw is None or profiled is None:
        return profiled
    spots = tuple((Spot(**spot), count) for spot, count in raw["spots"])
    return Eager(profiled.ops_per_step, profiled.share, spots)


def per_step(steps: Iterable[Step], count: int) -> tuple[Step, ...]:
    """Return steps of the profile, each of which held `count` training steps, per training step."""
    if count <= 1:
        return tuple(steps)
    return tuple(
        Step(
            step.step_ms / count,
            None if step.gpu_busy_ms is None else step.gpu_busy_ms / count,
            None if step.kernel_ms is None else step.kernel_ms / count,
            {bucket: ms / count for bucket, ms in step.buckets.items()},
        )
        for step in steps
    )
