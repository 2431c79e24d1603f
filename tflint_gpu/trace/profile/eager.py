"""Ops that Python ran one by one on the threads that mark the steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tflint_gpu.trace.evidence import Eager
from tflint_gpu.trace.profile.host import CallEvent, HostTrace
from tflint_gpu.trace.profile.intervals import Interval, clip, length, merge, subtract
from tflint_gpu.trace.profile.names import Kind
from tflint_gpu.trace.profile.steps import host_spans

#: Python that takes longer than this (5 ms, in ps) between two ops does something else than running ops.
BREATH = 5_000_000_000


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
            if not call.is_function and call.thread in threads and clip(inside, call.start, call.start + 1)
        ]
        ops += len(calls)
        busy += length(subtract(_one_by_one(calls), _elsewhere(host)))
        total += length(inside)
        steps += len(marked)
    return Eager(ops / steps, min(1.0, busy / total)) if steps and total else None


def _one_by_one(calls: Sequence[CallEvent]) -> list[Interval]:
    """Return when Python ran `calls`: from one op to the next where it did nothing else in between."""
    spans: list[Interval] = []
    for thread in {call.thread for call in calls}:
        mine = merge((call.start, call.end) for call in calls if call.thread == thread)
        gaps = [(before[1], after[0]) for before, after in pairwise(mine) if after[0] - before[1] <= BREATH]
        spans += [*mine, *gaps]
    return merge(spans)


def _elsewhere(host: HostTrace) -> list[Interval]:
    """Return when a whole function ran or input was waited for."""
    functions = [(call.start, call.end) for call in host.eager if call.is_function]
    waits = [wait for (kind, _), found in host.waits.items() if kind is Kind.INPUT for wait in found]
    return merge([*functions, *waits])
