"""Reads the host plane: step markers, waits, launches, ops, calls from Python and tf.data stages by thread."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import compress, count, islice
from operator import eq, le
from typing import Any, NamedTuple

from tflint_gpu.trace.profile.intervals import Interval
from tflint_gpu.trace.profile.memory import MEMORY_STATS, ON_GPU, Level, level_of
from tflint_gpu.trace.profile.names import CALLS, Kind, host_kind, op_type
from tflint_gpu.trace.profile.space import DamagedError, Line, Plane, Stats

#: The kinds whose time goes into a bucket of the step.
_IN_BUCKETS = frozenset({Kind.INPUT, Kind.LAUNCH, Kind.COMPILE, Kind.OP, Kind.HLO, Kind.HOST})

#: The stats that are read of each kind of event, besides ``group_id`` in files that have it.
_NEEDED = {
    Kind.ITERATOR: frozenset({"id", "parent_id"}),
    Kind.CAPTURED: frozenset({"id"}),
    Kind.MARKER: frozenset({"step_num", "no_step"}),
    Kind.FUNCTION: frozenset({"tf_function_call", "tracing_count"}),
    Kind.EAGER: frozenset({"eager_op", "is_func"}),
    Kind.LAUNCH: frozenset({"id", "correlation_id"}),
}


class Marker(NamedTuple):
    """A step as the host marked it: ``train`` with a `number`, on one `thread`; `group` in old files."""

    start: int
    end: int
    number: int
    thread: int
    group: int | None = None


class OpEvent(NamedTuple):
    """One run of an op (`name` as ``scope/name:Type``); `executor` is the id of the function run around it."""

    start: int
    end: int
    name: str
    executor: int | None
    input_thread: bool
    inside: str = ""


class StageEvent(NamedTuple):
    """One call of a tf.data iterator; `self_ps` is its length less its nested inputs on the same thread."""

    start: int
    end: int
    self_ps: int
    chain: str
    id: int | None
    parent: int | None


class CallEvent(NamedTuple):
    """A call from Python into the runtime: an eager op, or a ``tf.function`` with `mode` and `tracing_count`."""

    start: int
    end: int
    name: str
    thread: int
    is_function: bool = False
    mode: str = ""
    tracing_count: int = 0


@dataclass
class HostTrace:
    """What the threads of one host did; filled line by line, intervals by `group_id` where the file has it."""

    markers: list[Marker] = field(default_factory=list)
    #: When something began that is no part of a step.
    pauses: list[int] = field(default_factory=list)
    #: Intervals of each kind by group; all under None in files that do not group.
    waits: dict[tuple[Kind, int | None], list[Interval]] = field(default_factory=lambda: defaultdict(list))
    runtime: dict[int, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    ops: list[OpEvent] = field(default_factory=list)
    eager: list[CallEvent] = field(default_factory=list)
    functions: list[CallEvent] = field(default_factory=list)
    #: Where Python asked a dataset for its next element.
    draws: list[Interval] = field(default_factory=list)
    #: Where an eager op or a function ran, without what prepared it.
    runs: list[Interval] = field(default_factory=list)
    stages: list[StageEvent] = field(default_factory=list)
    #: Functions that tf.data ran, by the id of the run: (id, chain) of the stage that handed it to other
    #: threads, or (None, "") where the stage waited for it on its own thread.
    captured: dict[int, tuple[int | None, str]] = field(default_factory=dict)
    executor_ps: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    #: Correlation ids of the launches of device work and when each began, in two columns.
    launches: array[int] = field(default_factory=lambda: array("q"))
    launched_at: array[int] = field(default_factory=lambda: array("q"))
    #: What the allocators of GPUs had handed out, by their names, in no order.
    memory: dict[str, list[Level]] = field(default_factory=lambda: defaultdict(list))
    grouped: bool = False
    begin: int | None = None
    end: int | None = None

    def add(self, kind: Kind, start: int, end: int, group: int | None) -> None:
        """Note that the host spent ``[start, end)`` on `kind`; an interval inside the last one adds nothing."""
        known = self.waits[kind, group if self.grouped else None]
        if known and known[-1][0] <= start <= known[-1][1]:
            if end > known[-1][1]:
                known[-1] = (known[-1][0], end)
        else:
            known.append((start, end))

    def intervals(self, kind: Kind, group: int | None) -> list[Interval]:
        """Return the intervals of `kind` that belong to `group`; all of them where the file does not group."""
        return self.waits.get((kind, group if self.grouped else None), [])


@dataclass(slots=True)
class _Open:
    """A stage, an executor or an eager call whose end lies ahead: it decides what the events inside it mean."""

    end: int
    kind: Kind
    executor: int | None = None
    chain: str = ""
    stage: tuple[int, int | None, int | None] | None = None
    nested_ps: int = 0


_OUTSIDE = _Open(0, Kind.NOISE)
_NO_STATS: Stats = {}


#: What is done with an event, by its name, stats, start and end.
_Act = Callable[[str, Stats, int, int], None]


class _Plan(NamedTuple):
    """What is done with every event of one name on one thread.

    `read` fetches the stats that are needed, None where none is. Time that goes into a bucket of the step goes to
    `known`, in files that group events (`grouped`) to the group of each; what is not a step's `own` must have one.
    """

    name: str
    kind: Kind
    read: Callable[[Any], Stats] | None
    act: _Act | None
    known: list[Interval] | None
    grouped: bool
    own: bool


def read_host(plane: Plane) -> HostTrace:
    """Read a ``/host:CPU`` plane."""
    trace = HostTrace(grouped="group_id" in plane.stat_names.values())
    always = frozenset({"group_id"}) if trace.grouped else frozenset[str]()
    readers = {
        kind: plane.reader(_NEEDED.get(kind, frozenset()) | always) for kind in Kind if kind in _NEEDED or always
    }
    for line in plane.lines():
        _Thread(plane, line, trace, readers).read()
    return trace


class _Thread:
    """The events of one thread in order of time, with the stack of those that enclose the present one."""

    def __init__(
        self, plane: Plane, line: Line, trace: HostTrace, readers: dict[Kind, Callable[[Any], Stats]]
    ) -> None:
        self.plane, self.line, self.trace, self.readers = plane, line, trace, readers
        self.input_thread = line.name.startswith("tf_data_") and "get_next" not in line.name
        self.stack: list[_Open] = []
        self.last_stage: tuple[int | None, str] = (None, "")

    def read(self) -> None:
        # Columns of plain integers: a thread may hold millions of events, and an object each would stay.
        numbers, offsets, lengths = self.line.columns()
        if min(lengths, default=0) < 0:
            raise DamagedError
        plans = self._plans(numbers)
        wanted = array("q", compress(count(), map(plans.__contains__, numbers)))
        if not _in_order(offsets, lengths):
            wanted = array("q", sorted(wanted, key=lambda at: (offsets[at], -lengths[at])))
        if wanted:
            latest = self._walk(wanted, plans, numbers, offsets, lengths)
            begin, trace = self.line.base_ps + offsets[wanted[0]], self.trace
            trace.begin = begin if trace.begin is None else min(trace.begin, begin)
            trace.end = latest if trace.end is None else max(trace.end, latest)

    def _walk(
        self,
        wanted: array[int],
        plans: dict[int, _Plan],
        numbers: array[int],
        offsets: array[int],
        lengths: array[int],
    ) -> int:
        """Go through the `wanted` events in their order; return when the last of them ended.

        The hot loop of the reader: a profile has millions of events, and each call here takes seconds of them.
        """
        events, base, stack, add = self.line.events, self.line.base_ps, self.stack, self.trace.add
        latest = 0
        for at in wanted:
            start = base + offsets[at]
            end = start + lengths[at]
            if end > latest:
                latest = end
            while stack and stack[-1].end <= start:
                frame = stack.pop()
                if frame.stage is not None:
                    self._leave(frame, frame.stage)
            name, kind, read, act, known, grouped, own = plans[numbers[at]]
            stats = _NO_STATS if read is None else read(events[at])
            if act is not None:
                act(name, stats, start, end)
            if known is not None:
                if known and known[-1][0] <= start <= known[-1][1]:
                    if end > known[-1][1]:
                        known[-1] = (known[-1][0], end)
                else:
                    known.append((start, end))
            elif grouped and (own or "group_id" in stats):
                add(kind, start, end, stats.get("group_id"))
        while stack:
            frame = stack.pop()
            if frame.stage is not None:
                self._leave(frame, frame.stage)
        return latest

    def _plans(self, numbers: array[int]) -> dict[int, _Plan]:
        """Return the plan for each number of an event; what says nothing of a step has none.

        The first event of a name stands for all of that name on this thread.
        """
        events, plans = self.line.events, {}
        firsts = dict(zip(reversed(numbers), range(len(numbers) - 1, -1, -1), strict=True))
        for number, first in firsts.items():
            name = self.plane.names.get(number, "")
            kind = host_kind(name, frozenset(self.plane.stats(events[first])))
            if kind is Kind.MEMORY:
                self._memory(events[at] for at, each in enumerate(numbers) if each == number)
            elif kind is not Kind.NOISE:
                plans[number] = self._plan(name, kind)
        return plans

    def _plan(self, name: str, kind: Kind) -> _Plan:
        # Calls of functions span the work inside.
        counts = kind in _IN_BUCKETS and not (kind is Kind.OP and op_type(name) in CALLS)
        # What tf.data does ahead on its own threads is no part of a step, but where the file says which.
        own = counts and (kind is Kind.INPUT or not self.input_thread)
        known = self.trace.waits[kind, None] if own and not self.trace.grouped else None
        act = self._act(name, kind)
        return _Plan(name, kind, self.readers.get(kind), act, known, counts and self.trace.grouped, own)

    def _act(self, name: str, kind: Kind) -> _Act | None:
        # No attribute holds these methods: each would hold the thread and its events, and nothing collects cycles.
        if kind is Kind.LAUNCH:
            return self._execute if name.startswith("ExecutorState::Process") else self._launch
        acts: dict[Kind, _Act] = {
            Kind.OP: self._op,
            Kind.ITERATOR: self._iterator,
            Kind.CAPTURED: self._captured,
            Kind.MARKER: self._marker,
            Kind.FUNCTION: self._function,
            Kind.CONTAINER: self._container,
            Kind.EAGER: self._eager,
        }
        return acts.get(kind)

    def _op(self, name: str, _: Stats, start: int, end: int) -> None:
        outer = self.stack[-1] if self.stack else _OUTSIDE
        self.trace.ops.append(OpEvent(start, end, name, outer.executor, self.input_thread, outer.chain))

    def _iterator(self, name: str, stats: Stats, start: int, end: int) -> None:
        outer = self.stack[-1] if self.stack else _OUTSIDE
        stage = (start, stats.get("id"), stats.get("parent_id"))
        self.stack.append(_Open(end, Kind.ITERATOR, outer.executor, name, stage))

    def _marker(self, _: str, stats: Stats, start: int, end: int) -> None:
        if stats.get("no_step"):
            # The probe's word for what is no part of a step: the draw that finds a loop's input at its end.
            self.trace.pauses.append(start)
        else:
            number, group = stats.get("step_num", 0), stats.get("group_id")
            self.trace.markers.append(Marker(start, end, number, self.line.id, group))

    def _function(self, name: str, stats: Stats, start: int, end: int) -> None:
        mode, count = str(stats.get("tf_function_call")), int(stats.get("tracing_count") or 0)
        self.trace.functions.append(CallEvent(start, end, name, self.line.id, True, mode, count))

    def _container(self, name: str, _: Stats, start: int, end: int) -> None:
        self.trace.runtime[self.line.id].append((start, end))
        if name == "EagerKernelExecute":
            self.trace.runs.append((start, end))

    def _memory(self, events: Iterable[Any]) -> None:
        read = self.plane.reader(MEMORY_STATS)
        for event in events:
            stats = read(event)
            name = str(stats.get("allocator_name") or "")
            if name.startswith(ON_GPU):
                self.trace.memory[name].append(level_of(self.line.base_ps + event.offset_ps, stats))

    def _captured(self, _name: str, stats: Stats, _start: int, _end: int) -> None:
        inside = next((frame for frame in reversed(self.stack) if frame.stage), None)
        if "id" in stats:
            self.trace.captured[stats["id"]] = (None, "") if inside else self.last_stage

    def _eager(self, name: str, stats: Stats, start: int, end: int) -> None:
        """Keep the outer of the two events that one eager execution writes."""
        self.trace.runtime[self.line.id].append((start, end))
        if any(frame.kind is Kind.EAGER for frame in self.stack):
            return
        outer = self.stack[-1] if self.stack else _OUTSIDE
        self.stack.append(_Open(end, Kind.EAGER, outer.executor, outer.chain))
        op = str(stats.get("eager_op") or name.partition(": ")[2])
        if op.startswith(("IteratorGetNext", "MultiDeviceIteratorGetNext")):
            self.trace.add(Kind.INPUT, start, end, stats.get("group_id"))
            self.trace.draws.append((start, end))
            return
        is_function = bool(stats.get("is_func")) or op.startswith("__")
        self.trace.eager.append(CallEvent(start, end, op, self.line.id, is_function))

    def _execute(self, _: str, stats: Stats, start: int, end: int) -> None:
        executor = stats.get("id")
        self.stack.append(_Open(end, Kind.LAUNCH, executor, self.stack[-1].chain if self.stack else ""))
        if executor is not None:
            self.trace.executor_ps[executor] += end - start

    def _launch(self, _name: str, stats: Stats, start: int, _end: int) -> None:
        if "correlation_id" in stats:
            self.trace.launches.append(stats["correlation_id"])
            self.trace.launched_at.append(start)

    def _leave(self, frame: _Open, stage: tuple[int, int | None, int | None]) -> None:
        """Account the `stage` of a `frame` that has ended."""
        start, own, parent = stage
        length = frame.end - start
        self.trace.stages.append(StageEvent(start, frame.end, length - frame.nested_ps, frame.chain, own, parent))
        # The thread of a parallel stage calls its input first, then the function: the input names the stage.
        self.last_stage = (parent, frame.chain.rpartition("::")[0])
        outer = next((below for below in reversed(self.stack) if below.stage), None)
        if outer:
            outer.nested_ps += length


def _in_order(offsets: array[int], lengths: array[int]) -> bool:
    """Say whether events are sorted by start, enclosing ones first: profilers of today write them so."""
    if not all(map(le, offsets, islice(offsets, 1, None))):
        return False
    ties = compress(count(), map(eq, offsets, islice(offsets, 1, None)))
    return all(lengths[at] >= lengths[at + 1] for at in ties)
