"""Arithmetic of time intervals: lists of half-open ``(start, end)`` pairs of integers, in picoseconds here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of `intervals` as sorted, disjoint, non-empty intervals."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def length(merged: Iterable[Interval]) -> int:
    """Return the summed length of disjoint intervals."""
    return sum(end - start for start, end in merged)


def clip(merged: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """Return what of the sorted, disjoint `merged` lies in ``[start, end)``."""
    first = max(0, bisect_right(merged, (start, start)) - 1)
    found: list[Interval] = []
    for at in range(first, len(merged)):
        low, high = merged[at]
        if low >= end:
            break
        if high > start:
            found.append((max(low, start), min(high, end)))
    return found


def subtract(merged: Sequence[Interval], holes: Sequence[Interval]) -> list[Interval]:
    """Return what of `merged` no interval of `holes` covers; both sorted and disjoint."""
    left: list[Interval] = []
    hole = 0
    for start, end in merged:
        while hole < len(holes) and holes[hole][1] <= start:
            hole += 1
        at = hole
        while at < len(holes) and holes[at][0] < end:
            if holes[at][0] > start:
                left.append((start, holes[at][0]))
            start = max(start, holes[at][1])
            at += 1
        if start < end:
            left.append((start, end))
    return left
