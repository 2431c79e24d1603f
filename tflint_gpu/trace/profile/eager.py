"""Ops that Python ran one by one on the threads that mark the steps."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tflint_gpu.trace.evidence import Eager
from tflint_gpu.trace.profile.host import CallEvent, HostTrace
from tflint_gpu.trace.profile.intervals import Interval, holds, length, merge, subtract
from tflint_gpu.trace.profile.steps import host_spans

#: Python that takes longer than this (25 ms, in ps) between two ops of a step does something else than run ops.
#: An optimizer's distribution code alone takes several, and many times that on a busy machine.
BREATH = 25_000_000_000


def eager_of(hosts: Iterable[HostTrace]) -> Eager | None:
    """Return how many ops a step runs from Python, and the share of it in which it does; None without steps."""
    ops = busy = total = steps = 0
    for host in hosts:
        marked = host_spans(host)
        inside = merge((span.start, span.end) for span in marked)
        threads = {span.thread for span in marked}
        calls = [
            call
            for call in host.eager
            if not call.is_function and call.thread in threads and holds(inside, call.start)
        ]
        ops += len(calls)
        busy += length(subtract(_one_by_one(calls, [span.start for span in marked]), _elsewhere(host)))
        total += length(inside)
        steps += len(marked)
    return Eager(ops / steps, min(1.0, busy / total)) if steps and total else None


def _one_by_one(calls: Sequence[CallEvent], starts: Sequence[int]) -> list[Interval]:
    """Return when Python ran `calls`: from one op to the next of a step; `starts` are those of the steps."""
    spans: list[Interval] = []
    for thread in {call.thread for call in calls}:
        mine = merge((call.start, call.end) for call in calls if call.thread == thread)
        gaps = [
            (before[1], after[0])
            for before, after in pairwise(mine)
            if after[0] - before[1] <= BREATH and bisect(starts, before[1]) == bisect(starts, after[0])
        ]
        spans += [*mine, *gaps]
    return merge(spans)


def _elsewhere(host: HostTrace) -> list[Interval]:
    """Return when a whole function ran or input was waited for."""
    functions = [(call.start, call.end) for call in host.eager if call.is_function]
    # Not the waits of other threads, which make batches while Python runs ops.
    return merge([*functions, *host.draws])
