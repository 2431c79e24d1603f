"""Finds the steps of a profile and divides each into the buckets of `tflint_gpu.trace.evidence.BUCKETS`."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tflint_gpu.trace.evidence import BUCKETS, Step
from tflint_gpu.trace.profile.device import DeviceTrace
from tflint_gpu.trace.profile.host import HostTrace, Marker
from tflint_gpu.trace.profile.intervals import Interval, clip, length, merge, subtract, union
from tflint_gpu.trace.profile.names import Kind, Work, is_collective

#: A pause this many times the median between two steps is an epoch's end or an evaluation, not part of a step.
_PAUSE = 5


@dataclass(frozen=True)
class Span:
    """Where a step lies in time; `own_end` is where its marker ends, `end` where the next step begins."""

    number: int
    start: int
    end: int
    own_end: int
    thread: int | None = None
    group: int | None = None


def host_spans(host: HostTrace) -> list[Span]:
    """Return the marked steps of the host; each lasts until the next or a pause, so that work in between is seen.

    Files that group events keep their markers' own ends, as TensorFlow's own analysis does.
    """
    markers = _outermost(host.markers)
    if host.grouped:
        return [Span(m.number, m.start, m.end, m.end, m.thread, m.group) for m in markers]
    periods = [after.start - marker.start for marker, after in itertools.pairwise(markers)]
    limit = _PAUSE * statistics.median(periods) if periods else 0
    spans = []
    for marker, after in itertools.zip_longest(markers, markers[1:]):
        end = after.start if after and after.start - marker.start <= limit else marker.end
        end = min((pause for pause in host.pauses if marker.end <= pause < end), default=end)
        spans.append(Span(marker.number, marker.start, max(end, marker.end), marker.end, marker.thread))
    return spans


def _outermost(markers: Sequence[Marker]) -> list[Marker]:
    """Drop markers that lie inside another: a custom loop may mark what a library marks too."""
    kept: list[Marker] = []
    for marker in sorted(markers, key=lambda marker: (marker.start, -marker.end)):
        if not kept or marker.start >= kept[-1].end:
            kept.append(marker)
    return kept


def device_spans(device: DeviceTrace, host: HostTrace) -> list[Span]:
    """Return the steps of `device`.

    The host's step where it includes the device's own, else the device's: the rule of TensorFlow's analysis. Files
    without groups have host steps only, and the last one is stretched to the kernels that it launched.
    """
    marked = host_spans(host)
    if not host.grouped:
        return _stretched(marked, device, host)
    by_group = {span.group: span for span in marked}
    own = device.steps or [(start, end, group) for group, (start, end) in device.groups.items()]
    spans = []
    for start, end, group in sorted(own):
        outer = by_group.get(group)
        if outer and outer.start <= start and end <= outer.end:
            spans.append(outer)
        else:
            spans.append(Span(outer.number if outer else group, start, end, end, group=group))
    return spans


def _stretched(spans: list[Span], device: DeviceTrace, host: HostTrace) -> list[Span]:
    if not spans:
        return spans
    last = spans[-1]
    columns = zip(host.launches, host.launched_at, strict=True)
    launched = {launch for launch, start in columns if last.start <= start < last.end}
    ends = [kernel.end for kernel in device.kernels if kernel.correlation in launched]
    end = max([last.end, *ends])
    return [*spans[:-1], Span(last.number, last.start, end, last.own_end, last.thread, last.group)]


class Breakdown:
    """Divides steps into buckets, by device work where there is a `device`, else by the work of the CPU."""

    def __init__(self, host: HostTrace, device: DeviceTrace | None, step_ops: Sequence[Interval] = ()) -> None:
        self.host, self.device = host, device
        self.step_ops = merge(step_ops)
        self.work = {work: merge(device.work[work]) for work in Work} if device else {}
        self.busy = union(*self.work.values())
        self.kernels = union(*(self.work[work] for work in (Work.KERNEL, Work.COLLECTIVE) if device))
        self._cache: dict[int | None, dict[str, list[Interval]]] = {}
        self._runtime: dict[int | None, list[Interval]] = {}
        self._tracing = tracing(host)
        self._exchanges = merge((event.start, event.end) for event in host.ops if is_collective(event.name))

    def step(self, span: Span) -> Step:
        """Return `span` as a step; its buckets add up to its length."""
        left: list[Interval] = [(span.start, span.end)]
        rest = span.end - span.start
        buckets = {}
        by_bucket = self._buckets(span.group)
        for bucket in BUCKETS[:-1]:
            intervals = self._host_work(span, by_bucket) if bucket == "host" else by_bucket.get(bucket, [])
            after = subtract(left, clip(intervals, span.start, span.end))
            before, rest = rest, length(after)
            buckets[bucket] = _ms(before - rest)
            left = after
        buckets[BUCKETS[-1]] = _ms(rest)
        return Step(
            step_ms=_ms(span.end - span.start),
            gpu_busy_ms=_ms(length(clip(self.busy, span.start, span.end))) if self.device else None,
            kernel_ms=_ms(length(clip(self.kernels, span.start, span.end))) if self.device else None,
            buckets=buckets,
        )

    def _buckets(self, group: int | None) -> dict[str, list[Interval]]:
        if group not in self._cache:
            self._cache[group] = self._device_buckets(group) if self.device else self._cpu_buckets(group)
        return self._cache[group]

    def _device_buckets(self, group: int | None) -> dict[str, list[Interval]]:
        found = {work.value: intervals for work, intervals in self.work.items()}
        # Kernels of NCCL say when GPUs exchange; without them the hosts do it, over the network.
        found["collectives"] = found["collectives"] or self._exchanges
        found["input_wait"] = merge(self.host.intervals(Kind.INPUT, group))
        found["launch"] = merge(self.host.intervals(Kind.LAUNCH, group))
        found["compile"] = merge([*self.host.intervals(Kind.COMPILE, group), *self._tracing])
        kinds = (Kind.OP, Kind.HLO, Kind.HOST)
        found["host"] = merge(interval for kind in kinds for interval in self.host.intervals(kind, group))
        return found

    def _cpu_buckets(self, group: int | None) -> dict[str, list[Interval]]:
        return {
            "device_compute": self.step_ops,
            "input_wait": merge(self.host.intervals(Kind.INPUT, group)),
            "collectives": self._exchanges,
            "compile": merge([*self.host.intervals(Kind.COMPILE, group), *self._tracing]),
            "host": merge([*self.host.intervals(Kind.HOST, group), *self.host.intervals(Kind.LAUNCH, group)]),
        }

    def _host_work(self, span: Span, by_bucket: dict[str, list[Interval]]) -> list[Interval]:
        """Return when the host worked: recorded events, and Python wherever its thread is not in the runtime."""
        recorded = by_bucket.get("host", [])
        if span.thread is None or self.host.grouped:
            return recorded
        if span.thread not in self._runtime:
            self._runtime[span.thread] = merge(self.host.runtime[span.thread])
        inside = clip(self._runtime[span.thread], span.start, span.end)
        python = subtract([(span.start, span.end)], inside)
        return merge([*clip(recorded, span.start, span.end), *python])


def tracing(host: HostTrace) -> list[Interval]:
    """Return when a ``tf.function`` was traced: the call that traced it less the run inside.

    A run of an XLA function compiles first; there the whole call counts, as device work goes before compilation.
    """
    traced = [call for call in host.functions if call.mode.startswith("traced")]
    if not traced:
        return []
    plain = merge((call.start, call.end) for call in traced if not call.mode.endswith("-xla"))
    compiled = merge((call.start, call.end) for call in traced if call.mode.endswith("-xla"))
    return merge([*subtract(plain, merge(host.runs)), *compiled])


def _ms(picoseconds: int) -> float:
    return round(picoseconds / 1e9, 6)
