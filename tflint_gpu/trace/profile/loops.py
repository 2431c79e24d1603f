"""Loops inside graphs: how long they run and how many rounds they make, by the ops of their bodies."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tflint_gpu.trace.profile.host import HostTrace, OpEvent
from tflint_gpu.trace.profile.names import op_type

#: What the runtime puts between the name of a loop and the names of the ops in it, once it has taken it apart.
_PART = re.compile(r"/(?:body|cond)/_\d+/")
#: Ops that stand before and behind a loop over the rows of a tensor, and for nothing else: they show where it
#: runs even if no op in it is long enough for the profile.
_ENDS = re.compile(r"/TensorArray\w+/TensorList(?:FromTensor|Stack):")
#: Loops that the runtime runs whole.
_WHOLE = ("While", "StatelessWhile")


@dataclass(frozen=True)
class LoopTime:
    """One loop by the name of its node: milliseconds and rounds per step, `rounds` None where none was seen.

    The time is from the first op of a run to its last: on a GPU, that in which the host launches them. A ``/`` at
    the end of `scope` says that this is where the loop stands: only the ops before and behind it were seen.
    """

    scope: str
    ms: float
    rounds: float | None


@dataclass
class _Run:
    start: int
    end: int
    ops: Counter[str] = field(default_factory=Counter)


def loop_times(hosts: Iterable[HostTrace], steps: int) -> tuple[LoopTime, ...]:
    """Return the loops that were seen on `hosts` in so many steps; of nested loops the outermost."""
    runs: dict[str, list[_Run]] = defaultdict(list)
    for host in hosts:
        open_: dict[tuple[str, int | None], _Run] = {}
        for event in host.ops:
            if event.input_thread or event.inside or event.executor in host.captured:
                continue
            part, end = _PART.search(event.name), _ENDS.search(event.name)
            if part is not None:
                _join(open_, (event.name[: part.start()], event.executor), event)
            elif end is not None:
                _join(open_, (event.name[: end.start() + 1], event.executor), event)
            elif op_type(event.name) in _WHOLE:
                runs[event.name.rpartition(":")[0]].append(_Run(event.start, event.end))
        for (scope, _), run in open_.items():
            runs[scope].append(run)
    return tuple(
        LoopTime(
            scope,
            sum(run.end - run.start for run in made) / 1e9 / steps,
            None if scope.endswith("/") or not all(run.ops for run in made) else _rounds(made) / steps,
        )
        for scope, made in runs.items()
    )


def _join(runs: dict[tuple[str, int | None], _Run], key: tuple[str, int | None], event: OpEvent) -> None:
    run = runs.setdefault(key, _Run(event.start, event.end))
    run.start, run.end = min(run.start, event.start), max(run.end, event.end)
    run.ops[event.name] += 1


def _rounds(runs: Iterable[_Run]) -> int:
    """Return how often the loop went round in all its `runs`: as often as the op of its body that ran most."""
    return sum(max(run.ops.values()) for run in runs)
