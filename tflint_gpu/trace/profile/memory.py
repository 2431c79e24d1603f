"""GPU memory by the events that TensorFlow's allocator writes at every allocation and release."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tflint_gpu.trace.profile.intervals import Interval
from tflint_gpu.trace.usage import Memory

#: Stats of a memory event that are read, and how the allocators of GPUs are called (``GPU_0_bfc``).
MEMORY_STATS = frozenset({"allocator_name", "bytes_allocated", "bytes_available", "bytes_reserved"})
ON_GPU = "GPU_"

#: Fewer steps than this show no trend.
ENOUGH = 5


class Level(NamedTuple):
    """What an allocator had handed out at a moment (ps), and the most it may hand out; bytes."""

    at: int
    in_use: int
    limit: int


def level_of(at: int, stats: dict[str, int]) -> Level:
    """Return the level that an event tells: limit = reserved + handed out + still available."""
    in_use = stats.get("bytes_allocated") or 0
    limit = in_use + (stats.get("bytes_available") or 0) + (stats.get("bytes_reserved") or 0)
    return Level(at, in_use, limit)


def memory_of(hosts: Iterable[tuple[dict[str, list[Level]], Sequence[Interval]]]) -> Memory | None:
    """Return the memory of the fullest GPU; of each host its levels by allocator, and when its steps ran."""
    found = [
        _allocator(name, sorted(levels), steps)
        for by_name, steps in hosts
        for name, levels in by_name.items()
        if levels
    ]
    return max(found, key=lambda memory: memory.used_share, default=None)


def _allocator(name: str, levels: Sequence[Level], steps: Sequence[Interval]) -> Memory:
    peak, limit = max(level.in_use for level in levels), max(level.limit for level in levels)
    lows = _lows(levels, steps)
    if len(lows) < ENOUGH:
        return Memory(name, limit, peak)
    pairs = list(itertools.pairwise(lows))
    rising = sum(after > before for before, after in pairs) / len(pairs)
    return Memory(name, limit, peak, (lows[-1] - lows[0]) / len(pairs), rising)


def _lows(levels: Sequence[Level], steps: Sequence[Interval]) -> list[int]:
    """Return the least that was in use within each step that has events."""
    lows, at = [], 0
    for start, end in sorted(steps):
        while at < len(levels) and levels[at].at < start:
            at += 1
        first = at
        while at < len(levels) and levels[at].at < end:
            at += 1
        if first < at:
            lows.append(min(level.in_use for level in levels[first:at]))
    return lows
