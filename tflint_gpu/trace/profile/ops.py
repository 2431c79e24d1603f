"""Sums up the ops of a profile: how often each ran in a step, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tflint_gpu.trace.profile import names
from tflint_gpu.trace.profile.device import Kernel
from tflint_gpu.trace.profile.host import HostTrace, OpEvent


@dataclass(frozen=True)
class OpTime:
    """One op by its full `name` in the graph: runs and ms per step; `in_input` where tf.data ran it ahead."""

    op: str
    name: str
    count: float
    ms: float
    in_input: bool = False


def in_input(event: OpEvent, host: HostTrace) -> bool:
    """Say whether tf.data ran `event`: on its own thread, inside a stage, or in a function that a stage calls."""
    return event.input_thread or bool(event.inside) or event.executor in host.captured


def op_times(hosts: Sequence[HostTrace], steps: int) -> tuple[OpTime, ...]:
    """Sum up the ops that `hosts` ran by name, the longest first."""
    captured = {run for host in hosts for run in host.captured}
    found: dict[tuple[str, bool], list[int]] = {}
    for event in (event for host in hosts for event in host.ops):
        in_input = event.input_thread or bool(event.inside) or event.executor in captured
        entry = found.setdefault((event.name, in_input), [0, 0])
        entry[0] += 1
        entry[1] += event.end - event.start
    rows = [
        OpTime(names.op_type(name) or name, name.rpartition(":")[0], count / steps, time / 1e9 / steps, in_input)
        for (name, in_input), (count, time) in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.ms))


def device_op_times(kernels: Iterable[Kernel], steps: int) -> tuple[OpTime, ...]:
    """Sum up `kernels` by the op that launched them, the longest first."""
    found: dict[str, list[int]] = {}
    for kernel in kernels:
        if kernel.op:
            entry = found.setdefault(kernel.op, [0, 0])
            entry[0] += 1
            entry[1] += kernel.end - kernel.start
    rows = [
        OpTime(names.op_type(op) or "", op.rpartition(":")[0] or op, count / steps, time / 1e9 / steps)
        for op, (count, time) in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.ms))
