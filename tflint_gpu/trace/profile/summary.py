"""What one recorded profile says: devices, steps with their breakdown, kernels, copies, ops and tf.data stages."""

from __future__ import annotations

import contextlib
import gc
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import Copies, Device, Eager, Kernels, PipelineStage, Step
from tflint_gpu.trace.profile import names
from tflint_gpu.trace.profile.calls import called_steps
from tflint_gpu.trace.profile.copies import copies_of
from tflint_gpu.trace.profile.device import DeviceTrace, Kernel, read_device
from tflint_gpu.trace.profile.eager import eager_of
from tflint_gpu.trace.profile.host import HostTrace, OpEvent, read_host
from tflint_gpu.trace.profile.hosts import host_use
from tflint_gpu.trace.profile.intervals import Interval, clip, holds, length, merge
from tflint_gpu.trace.profile.kernels import kernel_stats
from tflint_gpu.trace.profile.layout import find_run
from tflint_gpu.trace.profile.loops import LoopTime, loop_times
from tflint_gpu.trace.profile.memory import memory_of
from tflint_gpu.trace.profile.ops import OpTime, device_op_times, in_input, op_times
from tflint_gpu.trace.profile.pipelines import pipeline_stages
from tflint_gpu.trace.profile.space import DamagedError, Plane, damaged, read_space
from tflint_gpu.trace.profile.steps import Breakdown, Span, device_spans, host_spans, tracing
from tflint_gpu.trace.usage import GpuUse, HostUse, Memory

#: How TensorFlow writes the port of a worker into the name of its file.
_PORT = re.compile(r"_(\d{4,5})$")


@dataclass(frozen=True)
class DeviceSummary:
    """One GPU of the profile. Times in ms; `busy_share` is of its steps, else of the span of its own activity.

    `host` is the name of its host where the profile has several.
    """

    name: str
    vendor: str
    capability: str | None
    memory_bytes: int | None
    traced: bool
    computes: bool
    busy_ms: float = 0.0
    kernel_ms: float = 0.0
    span_ms: float = 0.0
    busy_share: float | None = None
    steps: tuple[Step, ...] = ()
    kernels: Kernels | None = None
    collective_ms: float | None = None
    host: str = ""

    @property
    def label(self) -> str:
        """Its name for readers: ``GPU:0``, or ``worker1 GPU:0`` where there are several hosts."""
        return f"{self.host} {self.name.rpartition('/device:')[2]}".strip()

    @property
    def use(self) -> GpuUse:
        """How the GPU was used, per step of its own; its times are None where it has no steps."""
        name = self.label
        if not self.steps:
            return GpuUse(name, self.computes, self.busy_share)
        computed = sum(step.buckets["device_compute"] for step in self.steps) / len(self.steps)
        return GpuUse(name, self.computes, self.busy_share, computed, self.collective_ms, len(self.steps))


@dataclass(frozen=True)
class FunctionCalls:
    """Calls of one ``tf.function`` in the window: how often in each mode (``traced-nonXla`` …), and time in ms."""

    name: str
    calls: int
    modes: dict[str, int]
    tracing_count: int
    ms: float


@dataclass(frozen=True)
class ProfileSummary:
    """A profile in figures. Counts and times are per step, where there are steps, else for the whole window.

    `steps` are those of every GPU that computes (one entry per device and step), or of the host where none does.
    `seen_as` is ``marker`` (the host marked its steps), ``device`` (the file grouped device events), ``calls`` (of
    a training function) or ``time``: no steps were found, and the whole window counts as one.
    """

    files: tuple[str, ...]
    device: Device
    devices: tuple[DeviceSummary, ...] = ()
    steps: tuple[Step, ...] = ()
    seen_as: str = "time"
    kernels: Kernels | None = None
    copies: Copies | None = None
    memory: Memory | None = None
    hosts: tuple[HostUse, ...] = ()
    stages: tuple[PipelineStage, ...] = ()
    eager: Eager | None = None
    functions: tuple[FunctionCalls, ...] = ()
    tracing_ms: float = 0.0
    compile_ms: float = 0.0
    python_ops: tuple[OpTime, ...] = ()
    host_ops: tuple[OpTime, ...] = ()
    device_ops: tuple[OpTime, ...] = ()
    loops: tuple[LoopTime, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[DeviceSummary, ...]:
        """Return the GPUs that ran kernels."""
        return tuple(device for device in self.devices if device.computes)


@dataclass
class _Host:
    """One `file`: its host by `name`, its GPUs, and by the name of each GPU its steps and the kernels in them.

    `stepping` is the function whose calls are the steps, where none were marked.
    """

    host: HostTrace
    file: str
    name: str
    stepping: str = ""
    devices: list[DeviceTrace] = field(default_factory=list)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    kernels: dict[str, list[Kernel]] = field(default_factory=dict)


def read_profile(path: Path) -> ProfileSummary:
    """Read the newest profile at or below `path` (a logdir, a run's folder or one ``.xplane.pb``), hosts joined.

    Raises `UserError` where there is none, where a file is damaged, and where the device was no GPU.
    """
    run = find_run(path)
    if not run.xplanes:
        raise UserError(f"{path}: no *.xplane.pb in it; this profile holds tables only: use `tflint-gpu import`")
    notes = [f"Read the newest run, {run.folder.name}; {run.skipped} older left out."] if run.skipped else []
    if len(run.xplanes) > 1:
        notes.append(f"{len(run.xplanes)} hosts are joined: each step of each of them counts.")
    with _no_collection():
        return summarize([_read_file(file) for file in run.xplanes], notes)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Hold the cycle collector off: it would walk millions of events again and again, and none is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_file(file: Path) -> _Host:
    planes = read_space(file)
    _refuse_tpu(planes, file)
    found = _Host(HostTrace(), file.name, _PORT.sub(r":\1", file.name.removesuffix(".xplane.pb")))
    try:
        _read_planes(planes, found)
    except DamagedError:
        raise damaged(file) from None
    if not found.devices and found.host.begin is None:
        raise UserError(f"{file}: the profile has neither host nor GPU events; record it again while steps run")
    if not found.host.markers and not found.host.grouped:
        found.stepping, calls = called_steps(found.host)
        found.host.markers += calls
    return found


def _read_planes(planes: list[Plane], found: _Host) -> None:
    """Read `planes` into `found`; what was read is let go, as the bytes of a large profile count."""
    while planes:
        plane = planes.pop(0)
        if plane.name == "/host:CPU":
            found.host = read_host(plane)
        elif plane.name.startswith("/device:GPU:"):
            found.devices.append(read_device(plane))


def _refuse_tpu(planes: Iterable[Plane], file: Path) -> None:
    tpu = next((plane for plane in planes if plane.name.startswith("/device:TPU")), None)
    if tpu:
        kind = tpu.facts.get("device_type_string") or "TPU"
        raise UserError(f"{file}: not a GPU profile: it was recorded on a {kind}, which tflint-gpu does not judge")


def summarize(files: Sequence[_Host], notes: list[str]) -> ProfileSummary:
    """Join the hosts of one run into a summary; `notes` are sentences for the reader of the report."""
    seen_as = _find_spans(files)
    for found in files:
        found.kernels = {device.name: _in_steps(found, device) for device in found.devices}
    several = len(files) > 1
    by_host = [
        [_device_summary(found, device, found.name if several else "") for device in found.devices]
        for found in files
    ]
    devices = tuple(device for listed in by_host for device in listed)
    used = [device for device in devices if device.computes]
    own = [_own_steps(found, listed) for found, listed in zip(files, by_host, strict=True)]
    # A host without a GPU (a chief that only coordinates) counts where no host has one.
    steps = tuple(step for on_gpu, steps in own for step in steps if on_gpu or not used)
    per = max(1, sum(len(spans) for found in files for spans in found.spans.values()))
    kernels = [kernel for found in files for inside in found.kernels.values() for kernel in inside]
    hosts = [found.host for found in files]
    ops = op_times(hosts, per)
    return ProfileSummary(
        files=tuple(found.file for found in files),
        device=_main_device(devices),
        devices=devices,
        steps=steps,
        seen_as=seen_as,
        kernels=_all_kernels(used, kernels, per),
        copies=copies_of(*_copied(files), per) if any(device.traced for device in devices) else None,
        memory=memory_of((found.host.memory, _host_steps(found)) for found in files),
        hosts=_hosts(files, [steps for _, steps in own]) if several and seen_as != "time" else (),
        stages=pipeline_stages(hosts, per),
        eager=eager_of(hosts),
        functions=_functions(hosts),
        tracing_ms=sum(length(tracing(host)) for host in hosts) / 1e9,
        compile_ms=sum(length(merge(host.intervals(names.Kind.COMPILE, None))) for host in hosts) / 1e9,
        python_ops=tuple(row for row in ops if row.op in names.PYTHON_OPS),
        host_ops=ops,
        device_ops=device_op_times(kernels, per),
        loops=loop_times(hosts, per),
        notes=(*notes, *_notes(devices, seen_as, sorted({found.stepping for found in files} - {""}))),
    )


def _find_spans(files: Sequence[_Host]) -> str:
    """Fill the spans of every device (``""``: of the host, where no GPU computes); return how they were found."""
    seen_as = "time"
    for found in files:
        computing = [device for device in found.devices if device.computes]
        for device in computing:
            found.spans[device.name] = device_spans(device, found.host) or _whole(device.all_work())
        if not computing:
            window = [(found.host.begin or 0, found.host.end or 0)]
            found.spans[""] = host_spans(found.host) or _whole(window)
        if found.host.markers:
            seen_as = "calls" if found.stepping else "marker"
        elif seen_as == "time" and any(device.groups for device in computing):
            seen_as = "device"
    return seen_as


def _whole(intervals: Sequence[Interval]) -> list[Span]:
    start, end = min(start for start, _ in intervals), max(end for _, end in intervals)
    return [Span(0, start, end, end)] if end > start else []


def _device_summary(found: _Host, device: DeviceTrace, host: str) -> DeviceSummary:
    base = DeviceSummary(
        device.name,
        device.vendor,
        device.capability,
        device.memory_bytes,
        device.traced,
        device.computes,
        host=host,
    )
    if not device.traced:
        return base
    breakdown = Breakdown(found.host, device)
    steps = tuple(breakdown.step(span) for span in found.spans.get(device.name, []))
    busy, whole = length(breakdown.busy), breakdown.busy[-1][1] - breakdown.busy[0][0]
    total = sum(step.step_ms for step in steps)
    share = sum(step.gpu_busy_ms or 0.0 for step in steps) / total if total else busy / whole
    kernels = found.kernels[device.name]
    return replace(
        base,
        busy_ms=busy / 1e9,
        kernel_ms=length(breakdown.kernels) / 1e9,
        span_ms=whole / 1e9,
        busy_share=share,
        steps=steps,
        kernels=kernel_stats(kernels, max(1, len(steps)), device.vendor == "AMD") if kernels else None,
        collective_ms=_collective_ms(device, found.spans.get(device.name, [])),
    )


def _all_kernels(used: Sequence[DeviceSummary], kernels: Sequence[Kernel], per: int) -> Kernels | None:
    """Sum up the `kernels` of all GPUs; those of a single one are summed up already."""
    if len(used) == 1 and per == len(used[0].steps):
        return used[0].kernels
    return kernel_stats(kernels, per, any(device.vendor == "AMD" for device in used)) if kernels else None


def _collective_ms(device: DeviceTrace, spans: Sequence[Span]) -> float | None:
    """Return how long collectives ran on `device` per step, hidden behind other kernels or not."""
    if not spans:
        return None
    merged = merge(device.work[names.Work.COLLECTIVE])
    return sum(length(clip(merged, span.start, span.end)) for span in spans) / 1e9 / len(spans)


def _in_steps(found: _Host, device: DeviceTrace) -> list[Kernel]:
    """Return the kernels of `device` that started inside its steps."""
    inside = merge((span.start, span.end) for span in found.spans.get(device.name, []))
    return [kernel for kernel in device.kernels if holds(inside, kernel.start)]


def _hosts(files: Sequence[_Host], steps: Sequence[Sequence[Step]]) -> tuple[HostUse, ...]:
    return tuple(host_use(found.name, found.host, own) for found, own in zip(files, steps, strict=True))


def _own_steps(found: _Host, devices: Sequence[DeviceSummary]) -> tuple[bool, tuple[Step, ...]]:
    """Return whether GPUs of this host compute, and the steps of those, else of the host itself."""
    computing = [device for device in devices if device.computes]
    if computing:
        return True, tuple(step for device in computing for step in device.steps)
    return False, tuple(_cpu_steps(found))


def _cpu_steps(found: _Host) -> list[Step]:
    breakdown = Breakdown(found.host, None, _cpu_work(found.host))
    return [breakdown.step(span) for span in found.spans.get("", [])]


def _cpu_work(host: HostTrace) -> list[Interval]:
    """Return when the CPU computed for the step: ops of its functions, XLA programs, and ops run from Python."""
    ops = [
        (event.start, event.end)
        for event in host.ops
        if not in_input(event, host)
        and names.op_type(event.name) not in names.CALLS
        and not names.is_collective(event.name)
    ]
    eager = [(call.start, call.end) for call in host.eager if not call.is_function]
    return [*ops, *eager, *host.intervals(names.Kind.HLO, None)]


def _main_device(devices: Sequence[DeviceSummary]) -> Device:
    if not devices:
        return Device("CPU", "cpu", traced=True)
    used = [device for device in devices if device.computes] or list(devices)
    first = used[0]
    name = " ".join(filter(None, [first.vendor or "NVIDIA", "GPU"]))
    if first.capability:
        name += f" (compute capability {first.capability})"
    traced = any(device.traced for device in used)
    return Device(name, "gpu", traced, len(used), first.memory_bytes, first.capability)


def _copied(files: Sequence[_Host]) -> tuple[list[tuple[DeviceTrace, list[Interval]]], list[OpEvent]]:
    """Return every GPU with its steps, and the ops of all hosts."""
    devices = [
        (device, [(span.start, span.end) for span in found.spans.get(device.name, [])])
        for found in files
        for device in found.devices
    ]
    return devices, [event for found in files for event in found.host.ops]


def _host_steps(found: _Host) -> list[Interval]:
    return [(span.start, span.end) for span in host_spans(found.host)]


def _functions(hosts: Iterable[HostTrace]) -> tuple[FunctionCalls, ...]:
    calls = defaultdict(list)
    for host in hosts:
        for call in host.functions:
            calls[call.name].append(call)
    return tuple(
        FunctionCalls(
            name,
            len(found),
            dict(Counter(call.mode for call in found)),
            max(call.tracing_count for call in found),
            sum(call.end - call.start for call in found) / 1e9,
        )
        for name, found in calls.items()
    )


def _notes(devices: Sequence[DeviceSummary], seen_as: str, stepping: Sequence[str]) -> list[str]:
    notes = []
    if devices and not any(device.traced for device in devices):
        notes.append(
            f"{len(devices)} GPUs are in the profile but no event of theirs: not traced (CUPTI did not work, or "
            "nothing ran on them). Nothing is said of their use."
        )
    unused = [device for device in devices if not device.computes]
    if any(device.computes for device in devices) and unused:
        listed = ", ".join(device.label.replace("GPU:", "") for device in unused)
        notes.append(f"GPU {listed} ran no kernel; the figures are of the others.")
    if stepping:
        notes.append(f"No steps are marked in this profile: each call of {', '.join(stepping)} counts as one.")
    if seen_as == "time":
        notes.append("No steps are marked in this profile: the whole window counts as one.")
    return notes
