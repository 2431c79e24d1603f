"""Reads chrome timelines: those of TensorFlow 1 (``client/timeline.py``) and the profiler's ``trace.json.gz``."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import BUCKETS, Step
from tflint_gpu.trace.profile.intervals import Interval, clip, length, merge, subtract
from tflint_gpu.trace.profile.names import Work, device_work

#: ``/gpu:0/stream:14 Compute``. ``stream:all`` repeats every stream, ``memcpy`` repeats the copies.
_STREAM = re.compile(r"gpu:(\d+)/stream:(\d+|all)\b", re.I)
_GPU = re.compile(r"^/device:GPU:\d+")


@dataclass
class Timeline:
    """One timeline: intervals in ns by bucket, and whether it lists a GPU at all, and events of it."""

    gpus: set[str] = field(default_factory=set)
    work: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    kernels: int = 0
    traced: bool = False

    def step(self) -> Step | None:
        """Return the whole timeline as one step; None where it holds no events."""
        everything = [interval for intervals in self.work.values() for interval in intervals]
        if not everything:
            return None
        start, end = min(low for low, _ in everything), max(high for _, high in everything)
        left: list[Interval] = [(start, end)]
        buckets = {}
        for bucket in BUCKETS[:-1]:
            after = subtract(left, clip(merge(self.work[bucket]), start, end))
            buckets[bucket] = (length(left) - length(after)) / 1e6
            left = after
        buckets[BUCKETS[-1]] = length(left) / 1e6
        busy = merge(interval for work in Work for interval in self.work[work.value])
        kernels = merge([*self.work[Work.KERNEL.value], *self.work[Work.COLLECTIVE.value]])
        traced = self.traced
        return Step(
            (end - start) / 1e6,
            length(busy) / 1e6 if traced else None,
            length(kernels) / 1e6 if traced else None,
            buckets,
        )


def read_timeline(file: Path) -> Timeline:
    """Read `file`, plain or gzipped; raises `UserError` where it is damaged or no timeline."""
    events = _events(file)
    names = {
        event.get("pid"): str(event.get("args", {}).get("name", ""))
        for event in events
        if event.get("ph") == "M" and event.get("name") == "process_name"
    }
    streams = {pid: found for pid, name in names.items() if (found := _STREAM.search(name)) and "Compute" in name}
    numbered = {pid for pid, found in streams.items() if found[2] != "all"}
    timeline = Timeline()
    timeline.gpus = {name for name in names.values() if _GPU.match(name)} | {
        f"GPU {f[1]}" for f in streams.values()
    }
    for event in events:
        if event.get("ph") != "X":
            continue
        name, pid = names.get(event.get("pid"), ""), event.get("pid")
        start = round(float(event.get("ts", 0)) * 1000)
        interval = (start, start + round(float(event.get("dur", 0)) * 1000))
        if _GPU.match(name) or pid in (numbered or streams):
            _on_device(timeline, str(event.get("args", {}).get("name") or event.get("name")), event, interval)
        elif pid not in streams and "memcpy" not in name and "Tensors" not in name:
            # The rows of ops on the host span their waits, so they cannot be told into launch and compute.
            timeline.work["host"].append(interval)
    return timeline


def _on_device(timeline: Timeline, name: str, event: dict[str, Any], interval: Interval) -> None:
    work = device_work(str(event.get("name", "")))
    work = device_work(name) if work is Work.KERNEL else work
    timeline.work[work.value].append(interval)
    timeline.kernels += work is Work.KERNEL
    timeline.traced = True


def _events(file: Path) -> list[dict[str, Any]]:
    try:
        raw = file.read_bytes()
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except OSError as problem:
        if problem.strerror:
            raise UserError(f"{file}: cannot be read: {problem.strerror}") from None
        raise UserError(_damaged(file)) from None
    except (EOFError, zlib.error, ValueError):
        raise UserError(_damaged(file)) from None
    events = data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list):
        raise UserError(f"{file}: JSON, but no chrome timeline; give the .xplane.pb or the .pb tables beside it")
    return [event for event in events if isinstance(event, dict)]


def _damaged(file: Path) -> str:
    return f"{file}: not a readable timeline (truncated or damaged); copy or record it again"
