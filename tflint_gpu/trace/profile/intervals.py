"""Arithmetic of time intervals: lists of half-open ``(start, end)`` pairs of integers, in picoseconds here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of `intervals` as sorted, disjoint, non-empty intervals."""
    merged: list[Interval] = []
    low = high = 0
    for start, end in sorted(intervals):
        if start > high or high <= low:
            if high > low:
                merged.append((low, high))
            low, high = start, end
        elif end > high:
            high = end
    if high > low:
        merged.append((low, high))
    return merged


def union(*merged: list[Interval]) -> list[Interval]:
    """Return the union of sorted, disjoint lists."""
    filled = [each for each in merged if each]
    return filled[0] if len(filled) == 1 else merge(interval for each in filled for interval in each)


def length(merged: Iterable[Interval]) -> int:
    """Return the summed length of disjoint intervals."""
    return sum([end - start for start, end in merged])


def clip(merged: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """Return what of the sorted, disjoint `merged` lies in ``[start, end)``."""
    first = max(0, bisect_right(merged, (start, start)) - 1)
    found = list(merged[first : bisect_left(merged, (end,))])
    if found and found[0][1] <= start:
        del found[0]
    if found and found[0][0] < start:
        found[0] = (start, found[0][1])
    if found and found[-1][1] > end:
        found[-1] = (found[-1][0], end)
    return found


def holds(merged: Sequence[Interval], moment: int) -> bool:
    """Say whether `moment` lies in one of the sorted, disjoint `merged`."""
    at = bisect_left(merged, (moment + 1,)) - 1
    return at >= 0 and moment < merged[at][1]


def subtract(merged: Sequence[Interval], holes: Sequence[Interval]) -> list[Interval]:
    """Return what of `merged` no interval of `holes` covers; both sorted and disjoint."""
    if not holes:
        return list(merged)
    left: list[Interval] = []
    hole, count = 0, len(holes)
    for start, end in merged:
        while hole < count and holes[hole][1] <= start:
            hole += 1
        at = hole
        while at < count:
            low, high = holes[at]
            if low >= end:
                break
            if low > start:
                left.append((start, low))
            start = high
            at += 1
        if start < end:
            left.append((start, end))
    return left
