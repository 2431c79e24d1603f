"""Copies between host and GPU: how many, how large, and which of them send data out and back within a step."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.trace.evidence import Copies
from tflint_gpu.trace.profile.intervals import Interval, clip, length, merge
from tflint_gpu.trace.profile.names import CALLS, Work, op_type

if TYPE_CHECKING:
    from tflint_gpu.trace.profile.device import Copy, DeviceTrace
    from tflint_gpu.trace.profile.host import OpEvent

#: Copies below this size are scalars, sizes and flags.
LARGE = 64 * 1024

#: The longest time (ps) between two copies that one op of the host fills: 100 ms.
_LONGEST = 100 * 10**9


@dataclass(frozen=True)
class RoundTrips:
    """Trips of large data to the host and back between kernels: how many, the GPU's idle time (ps), and when."""

    count: int = 0
    idle_ps: int = 0
    gaps: tuple[Interval, ...] = ()


def copies_of(
    devices: Sequence[tuple[DeviceTrace, Sequence[Interval]]], ops: Iterable[OpEvent], steps: int
) -> Copies:
    """Sum up the copies of `devices`, each with its steps, over `steps`; `ops` are what the hosts ran."""
    size, count = Counter[Work](), Counter[Work]()
    for device, _ in devices:
        size.update(device.copied_bytes)
        count.update({work: len(intervals) for work, intervals in device.work.items()})
    trips = [round_trips(device, spans) for device, spans in devices if device.computes]
    gaps = merge(gap for trip in trips for gap in trip.gaps)
    return Copies(
        size[Work.TO_DEVICE] / steps,
        size[Work.TO_HOST] / steps,
        count[Work.TO_DEVICE] / steps,
        count[Work.TO_HOST] / steps,
        round_trips=sum(trip.count for trip in trips) / steps,
        round_trip_ms=sum(trip.idle_ps for trip in trips) / 1e9 / steps,
        round_trip_op=_busiest(ops, gaps) if gaps else "",
    )


def round_trips(device: DeviceTrace, spans: Sequence[Interval]) -> RoundTrips:
    """Return the round trips of `device` within its steps.

    A copy to the host and the next copy back count where kernels run before and after: results that leave at a
    step's end, and a batch that comes at its start, are no trip.
    """
    kernels = merge([*device.work[Work.KERNEL], *device.work[Work.COLLECTIVE]])
    back = sorted(copy for copy in device.copies if copy.to_device and copy.bytes >= LARGE)
    starts = [copy.start for copy in back]
    gaps = []
    for out in sorted(copy for copy in device.copies if not copy.to_device and copy.bytes >= LARGE):
        at = bisect_left(starts, out.end)
        if at < len(back) and _splits(out, back[at], kernels, spans):
            gaps.append((out.start, back[at].end))
    trips = merge(gaps)
    idle = sum(end - start - length(clip(kernels, start, end)) for start, end in trips)
    return RoundTrips(len(trips), idle, tuple(trips))


def _splits(out: Copy, back: Copy, kernels: Sequence[Interval], spans: Sequence[Interval]) -> bool:
    """Say whether both copies lie in one step, between kernels of it, with the GPU mostly idle in between."""
    inside = next((span for span in spans if span[0] <= out.start and back.end <= span[1]), None)
    gap = back.end - out.start
    if inside is None or gap > _LONGEST:
        return False
    before, after = clip(kernels, inside[0], out.start), clip(kernels, back.end, inside[1])
    return bool(before and after) and length(clip(kernels, out.start, back.end)) <= gap / 2


def _busiest(ops: Iterable[OpEvent], gaps: Sequence[Interval]) -> str:
    """Return the type of the op that the host spent most of the `gaps` in, "" where none ran."""
    spent = Counter[str]()
    for event in ops:
        kind = op_type(event.name)
        if kind and kind not in CALLS and not event.input_thread:
            spent[kind] += length(clip(gaps, event.start, event.end))
    best = spent.most_common(1)
    return best[0][0] if best and best[0][1] else ""
