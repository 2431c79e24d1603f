"""Makes evidence of profiles that people already have: TensorBoard folders, XPlane files, TF 1 timelines."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflint_gpu import __version__
from tflint_gpu.errors import UserError
from tflint_gpu.trace.assemble import now, spread
from tflint_gpu.trace.evidence import SCHEMA, Device, Environment, Evidence, Step, TracedFunction, Window
from tflint_gpu.trace.profile.layout import Run, find_run
from tflint_gpu.trace.profile.summary import FunctionCalls, ProfileSummary, read_profile
from tflint_gpu.trace.profile.tables import Tables, read_tables
from tflint_gpu.trace.profile.timeline import Timeline, read_timeline

#: Rows of a table of the report.
_MOST = 8


@dataclass(frozen=True)
class Imported:
    """Evidence of an imported profile, and the profile behind it where it was an XPlane file."""

    evidence: Evidence
    profile: ProfileSummary | None = None


def import_profile(path: Path) -> Imported:
    """Read the newest profile at or below `path` into evidence.

    Raises `UserError` where there is none, where it is damaged, and where it was recorded on a TPU.
    """
    run = find_run(path)
    if run.xplanes:
        profile = read_profile(path)
        return Imported(_of_profile(profile, path), profile)
    return Imported(_of_tables(run, path))


def _of_profile(profile: ProfileSummary, path: Path) -> Evidence:
    note = "" if profile.seen_as == "time" else "Steps of the profile, with the profiler running."
    return _evidence(
        path,
        profile.device,
        profile.steps,
        seen_as="time" if profile.seen_as == "time" else "step function",
        note=note,
        notes=profile.notes,
        more={
            "pipelines": profile.stages,
            "functions": tuple(_function(function) for function in profile.functions),
            "eager": profile.eager,
            "copies": profile.copies,
            "kernels": profile.kernels,
            "gpus": tuple(device.use for device in profile.devices),
            "hosts": profile.hosts,
            "memory": profile.memory,
        },
    )


def _function(calls: FunctionCalls) -> TracedFunction:
    traced = sum(count for mode, count in calls.modes.items() if mode.startswith("traced"))
    jit = any(mode.endswith("-xla") for mode in calls.modes)
    return TracedFunction(calls.name, max(calls.tracing_count, traced), traced, calls.calls, jit)


def _of_tables(run: Run, path: Path) -> Evidence:
    """Make evidence of a folder without XPlane files: tables that TensorFlow computed, or timelines."""
    tables = read_tables(run.tools)
    if tables and tables.hardware.upper().startswith("TPU"):
        raise UserError(
            f"{path}: not a GPU profile: it was recorded on a {tables.hardware}, which tflint-gpu does not judge"
        )
    if tables and tables.steps:
        return _of_steps(tables, path)
    files = [*run.timelines, *(file for file in run.tools if file.name.endswith("trace.json.gz"))]
    timelines = [read_timeline(file) for file in files]
    if not timelines and not tables:
        names = ", ".join(file.name for file in run.tools) or path.name
        raise UserError(f"{path}: nothing to read in {names}; give the folder that holds the .xplane.pb")
    return _of_timelines(timelines, tables, path)


def _of_steps(tables: Tables, path: Path) -> Evidence:
    on_gpu = tables.hardware.upper() == "GPU"
    facts = {} if tables.compute_16bit is None else {"compute_16bit_share": tables.compute_16bit}
    return _evidence(
        path,
        Device("GPU", "gpu", traced=True, count=tables.gpus or 1) if on_gpu else Device("CPU", "cpu", traced=True),
        tables.steps,
        seen_as="step function",
        note="Figures as TensorFlow computed them when it recorded; it counts copies as device compute.",
        more={"facts": facts},
    )


def _of_timelines(timelines: Sequence[Timeline], tables: Tables | None, path: Path) -> Evidence:
    steps = tuple(step for timeline in timelines if (step := timeline.step()))
    gpus = set().union(*(timeline.gpus for timeline in timelines))
    if not gpus and not (tables and tables.hardware.upper() == "GPU"):
        return _evidence(path, Device("CPU", "cpu", traced=True), steps, notes=(_NO_STEPS,))
    traced = any(timeline.traced for timeline in timelines)
    device = Device("GPU", "gpu", traced, len(gpus) or 1)
    if not traced:
        return _evidence(path, device, (), notes=(_NOT_TRACED,))
    return _evidence(path, device, steps, notes=(_NO_STEPS,))


_NO_STEPS = "A timeline marks no steps: each file counts as one."
_NOT_TRACED = (
    "GPU not traced: the profile lists a GPU but no event of it. That is not an idle GPU: CUPTI could not be "
    "loaded or was not allowed to trace; see the log of the recorded run."
)


def _evidence(
    path: Path,
    device: Device,
    steps: tuple[Step, ...],
    *,
    seen_as: str = "time",
    note: str = "",
    notes: tuple[str, ...] = (),
    more: dict[str, object] | None = None,
) -> Evidence:
    times = [step.step_ms for step in steps]
    window = Window(seen_as, 0, len(steps), statistics.median(times), spread(times), note=note) if steps else None
    return Evidence(
        SCHEMA,
        f"tflint-gpu {__version__}",
        now(),
        ("import", str(path)),
        Environment(device=device),
        window,
        steps,
        notes=notes,
        **(more or {}),  # type: ignore[arg-type]
    )


def describe(imported: Imported) -> str:
    """Return what only an imported profile has to tell: each GPU, kernels, dearest ops, tf.data stages."""
    profile = imported.profile
    if profile is None:
        return ""
    parts = [_devices(profile), _kernels(profile), _ops(profile), _stages(profile), _functions(profile)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _devices(profile: ProfileSummary) -> list[str]:
    rows = [
        [
            device.label,
            str(len(device.steps)) if device.computes else "-",
            f"{statistics.fmean(step.step_ms for step in device.steps):.2f}" if device.steps else "-",
            f"{device.busy_share * 100:.1f} %" if device.busy_share is not None else "-",
            f"{device.kernel_ms:.2f}",
            f"{device.busy_ms - device.kernel_ms:.2f}",
        ]
        for device in profile.devices
        if device.traced
    ]
    return _table(rows, ["device", "steps", "step ms", "busy", "kernels ms", "exposed copies ms"]) if rows else []


def _kernels(profile: ProfileSummary) -> list[str]:
    kernels = profile.kernels
    if kernels is None:
        return []
    shares = {
        "matrix products": kernels.gemm_share,
        "elementwise": kernels.elementwise_share,
        "tensor cores": kernels.tensor_core_share,
        "float64": kernels.float64_share,
    }
    told = ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares.items() if share is not None)
    return [f"kernels: {kernels.per_step:.0f} a step, median {kernels.median_us:.0f} µs; by device time: {told}"]


def _ops(profile: ProfileSummary) -> list[str]:
    """Return the dearest kinds of op; kernels of XLA have no kind and stand under the name of their fusion."""
    where = "GPU" if profile.device_ops else "CPU"
    found: dict[str, tuple[float, float]] = {}
    for op in profile.device_ops or profile.host_ops:
        if not op.in_input:
            kind = op.op or op.name.partition(".")[0]
            count, ms = found.get(kind, (0.0, 0.0))
            found[kind] = (count + op.count, ms + op.ms)
    dearest = sorted(found.items(), key=lambda item: -item[1][1])[:_MOST]
    rows = [[kind, f"{count:.3g}", f"{ms:.3f}"] for kind, (count, ms) in dearest]
    return _table(rows, [f"op ({where})", "a step", "ms a step"]) if rows else []


def _stages(profile: ProfileSummary) -> list[str]:
    stages = sorted(profile.stages, key=lambda stage: -stage.self_ms)[:_MOST]
    rows = [[stage.op, f"{stage.self_ms:.3f}", str(stage.count), stage.chain[-70:]] for stage in stages]
    return _table(rows, ["tf.data stage", "own ms a step", "calls", "chain"]) if rows else []


def _functions(profile: ProfileSummary) -> list[str]:
    return list(_retraced(profile.functions))


def _retraced(functions: Sequence[FunctionCalls]) -> Iterator[str]:
    for function in functions:
        traced = sum(count for mode, count in function.modes.items() if mode.startswith("traced"))
        if traced:
            yield f"tf.function {function.name} was traced in {traced} of its {function.calls} calls"


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> list[str]:
    from tabulate import tabulate

    text = tabulate(rows, headers, tablefmt="simple", disable_numparse=True)
    return [line.rstrip() for line in text.split("\n")]
