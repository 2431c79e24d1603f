"""Reads the GPU planes: what ran on the streams of each device."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tflint_gpu.trace.profile.intervals import Interval
from tflint_gpu.trace.profile.names import Work, device_work
from tflint_gpu.trace.profile.space import DamagedError, Line, Plane, Stats

_NEEDED = frozenset({"tf_op", "level 0", "hlo_op", "correlation_id", "memcpy_details", "group_id"}) | {
    "kernel_details"
}
_BYTES = re.compile(r"(?:num_bytes|size):(\d+)")
_OCCUPANCY = re.compile(r"occ_pct:(\d+(?:\.\d+)?)")


class Kernel(NamedTuple):
    """One run of a kernel; `op` is the TensorFlow or XLA op that launched it, empty where unknown."""

    start: int
    end: int
    name: str
    op: str
    correlation: int | None = None
    occupancy: float | None = None


class Copy(NamedTuple):
    """One copy between host and device."""

    start: int
    end: int
    to_device: bool
    bytes: int


@dataclass
class DeviceTrace:
    """A GPU: its facts, and the intervals of its stream events by kind of work."""

    name: str
    vendor: str = ""
    capability: str | None = None
    memory_bytes: int | None = None
    kernels: list[Kernel] = field(default_factory=list)
    work: dict[Work, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    copied_bytes: Counter[Work] = field(default_factory=Counter)
    copies: list[Copy] = field(default_factory=list)
    #: Step spans that the file itself derived (old files): (start, end, group).
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    groups: dict[int, Interval] = field(default_factory=dict)

    @property
    def traced(self) -> bool:
        """Whether any stream event was recorded; without one the GPU was not used, or not traced."""
        return any(self.work.values())

    @property
    def computes(self) -> bool:
        """Whether kernels ran on it, not copies alone."""
        return bool(self.kernels)

    def all_work(self) -> list[Interval]:
        """Return the intervals of all stream events, copies included."""
        return [interval for intervals in self.work.values() for interval in intervals]


def read_device(plane: Plane) -> DeviceTrace:
    """Read a ``/device:GPU:n`` plane. Lines other than streams repeat what the streams hold, and are left out."""
    facts = plane.facts
    major, minor = facts.get("compute_cap_major"), facts.get("compute_cap_minor")
    trace = DeviceTrace(
        name=plane.name,
        vendor=str(facts.get("device_vendor") or ""),
        capability=f"{major}.{minor or 0}" if major is not None else None,
        memory_bytes=facts.get("memory_size"),
    )
    for line in plane.lines():
        if line.name.startswith("Stream"):
            _read_stream(plane, line, trace)
        elif line.name == "Steps":
            _read_steps(plane, line, trace)
    return trace


def _read_stream(plane: Plane, line: Line, trace: DeviceTrace) -> None:
    read, base, groups = plane.reader(_NEEDED), line.base_ps, trace.groups
    plans: dict[int, tuple[str, Work, list[Interval]]] = {}
    for event in line.events:
        number = event.metadata_id
        if number not in plans:
            name = plane.names.get(number, "")
            plans[number] = (name, device_work(name), trace.work[device_work(name)])
        name, work, known = plans[number]
        start = base + event.offset_ps
        end = start + event.duration_ps
        if end < start:
            raise DamagedError
        stats = read(event)
        known.append((start, end))
        if work is Work.KERNEL or work is Work.COLLECTIVE:
            occupancy = _occupancy(stats.get("kernel_details"))
            trace.kernels.append(Kernel(start, end, name, _op(stats), stats.get("correlation_id"), occupancy))
        else:
            size = _size(stats)
            trace.copied_bytes[work] += size
            if work is not Work.ON_DEVICE:
                trace.copies.append(Copy(start, end, work is Work.TO_DEVICE, size))
        group = stats.get("group_id")
        if group is not None:
            low, high = groups.get(group, (start, end))
            groups[group] = (min(low, start), max(high, end))


def _op(stats: Stats) -> str:
    """Return the op that launched a kernel: old files call the stat ``level 0``, XLA names a part of its own."""
    op = str(stats.get("tf_op") or stats.get("level 0") or "")
    return str(stats.get("hlo_op") or "") if not op or op.startswith("XlaModule") else op


def _size(stats: Stats) -> int:
    found = _BYTES.search(str(stats.get("memcpy_details") or ""))
    return int(found[1]) if found else 0


@functools.cache
def _occupancy(details: str | None) -> float | None:
    """Return the share of warps that a kernel may fill; None where it is not told, which ROCm writes as 0."""
    found = _OCCUPANCY.search(details or "")
    return float(found[1]) / 100 or None if found else None


def _read_steps(plane: Plane, line: Line, trace: DeviceTrace) -> None:
    for event in line.events:
        group = plane.stats(event).get("group_id")
        if group is None:
            continue
        start = line.base_ps + event.offset_ps
        trace.steps.append((start, start + event.duration_ps, group))
