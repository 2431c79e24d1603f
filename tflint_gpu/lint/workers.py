"""Groups of files shared out among several processes: what comes back is what one process would have found."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tflint_gpu.lint.groups import Found, asked_of, find, forget_asked, free_now_and_then

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from tflint_gpu.config import Settings
    from tflint_gpu.program.build import Gathered
    from tflint_gpu.source.texts import Source

#: Lines beside those of the largest group for which a second process pays for its start.
WORTH_A_PROCESS = 15_000
#: Lines in all below which one process does.
FEW_LINES = 30_000


def useful_jobs(lines: Sequence[int]) -> int:
    """Return how many processes pay for groups of so many `lines`; one group cannot be split."""
    largest = max(lines, default=0)
    if sum(lines) < FEW_LINES or sum(lines) - largest < WORTH_A_PROCESS:
        return 1
    return min(_cores(), -(-sum(lines) // largest))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_in_processes(
    jobs: int,
    groups: Sequence[list[str]],
    gathered: Gathered,
    settings: Settings,
    method: str | None = None,
) -> Iterator[tuple[int, Found, dict[str, Any]]]:
    """Yield, as they are done, the number of each of `groups`, what is found in it, and what it asked of others.

    The largest groups go first. Where a process dies its group is left out, and where none can be started all of
    them: the caller does what is missing. `method` is how processes start (that of least cost).
    """
    order = sorted(range(len(groups)), key=lambda number: -_lines(groups[number], gathered))
    pending = iter(order)
    settings = replace(settings, exclude=(), per_file_ignores=())
    with _started(jobs, (tuple(gathered.sources), settings), method) as workers:
        busy = {pipe: next(pending) for pipe in workers}
        for pipe, number in list(busy.items()):
            _hand_over(pipe, groups[number], gathered)
        while busy:
            for pipe in _ready(list(busy)):
                number = busy.pop(pipe)
                try:
                    found, asked = pipe.recv()
                except (EOFError, OSError):
                    continue
                yield number, found, asked
                if (following := next(pending, None)) is not None:
                    _hand_over(pipe, groups[following], gathered)
                    busy[pipe] = following


def _lines(group: list[str], gathered: Gathered) -> int:
    return sum(gathered.sources[name].text.count("\n") for name in group)


def _ready(pipes: list[Connection]) -> list[Connection]:
    from multiprocessing.connection import wait

    return wait(pipes)  # type: ignore[return-value]


def _hand_over(pipe: Connection, group: list[str], gathered: Gathered) -> None:
    with contextlib.suppress(OSError):  # a process that is gone is noticed when its answer is due
        pipe.send((group, {name: gathered.sources[name] for name in group}))


@contextlib.contextmanager
def _started(jobs: int, about: tuple[Any, ...], method: str | None) -> Iterator[list[Connection]]:
    """Start processes and give the pipes to them; none is left when this ends, however it ends."""
    import multiprocessing

    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context(method or ("forkserver" if "forkserver" in methods else "spawn"))
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__, "tflint_gpu.lint.preloaded"])
    processes: list[BaseProcess] = []
    pipes: list[Connection] = []
    try:
        with contextlib.suppress(OSError, EOFError):
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                process = context.Process(target=serve, args=(theirs, *about), daemon=True)
                process.start()
                processes.append(process)
                pipes.append(ours)
                theirs.close()
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.kill()
            process.join()


def _end_with_the_first() -> None:
    """Work for nobody no longer: the process that shared out the work was killed."""
    from multiprocessing import parent_process

    first = parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def serve(pipe: Connection, names: Sequence[str], settings: Settings) -> None:
    """Be one of the processes: answer each group that comes out of `pipe` until it is closed."""
    from tflint_gpu.checks import load
    from tflint_gpu.program.modules import ModuleIndex

    # Ctrl-C reaches every process of the terminal; the first one tells the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    gc.disable()
    checks = load(settings)
    index = ModuleIndex(names)
    read = 0
    with contextlib.suppress(EOFError, OSError):
        while True:
            group: list[str]
            sources: dict[str, Source]
            group, sources = pipe.recv()
            forget_asked(index)
            read = free_now_and_then(read, sources.values())
            found = find(group, index, sources, settings, checks)
            pipe.send((found.without_detail(), asked_of(index)))
