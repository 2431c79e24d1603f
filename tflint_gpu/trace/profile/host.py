"""Reads the host plane: step markers, waits, launches, ops, calls from Python and tf.data stages by thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tflint_gpu.trace.profile.intervals import Interval
from tflint_gpu.trace.profile.memory import MEMORY_STATS, ON_GPU, Level, level_of
from tflint_gpu.trace.profile.names import CALLS, PYTHON_OPS, Kind, host_kind, op_type
from tflint_gpu.trace.profile.space import Line, Plane

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
    executor_ps: Counter[int] = field(default_factory=Counter)
    launches: dict[int, int] = field(default_factory=dict)
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


#: Room for a duration below an offset in one sort key: 2**60 ps are 13 days.
_DURATION_BITS = 60
_OUTSIDE = _Open(0, Kind.NOISE)
_NO_STATS: dict[str, Any] = {}


def read_host(plane: Plane) -> HostTrace:
    """Read a ``/host:CPU`` plane."""
    trace = HostTrace(grouped="group_id" in plane.stat_names.values())
    for line in plane.lines():
        _Thread(plane, line, trace).read()
    return trace


class _Thread:
    """The events of one thread in order of time, with the stack of those that enclose the present one."""

    def __init__(self, plane: Plane, line: Line, trace: HostTrace) -> None:
        self.plane, self.line, self.trace = plane, line, trace
        self.input_thread = line.name.startswith("tf_data_") and "get_next" not in line.name
        self.always = frozenset({"group_id"}) if trace.grouped else frozenset[str]()
        self.needed = {kind: stats | self.always for kind, stats in _NEEDED.items()}
        self.end = 0
        self.kinds: dict[int, Kind] = {}
        self.stack: list[_Open] = []
        self.last_stage: tuple[int | None, str] = (None, "")

    def read(self) -> None:
        events = self.line.events
        # Numbers, not events: a thread may hold millions, and each event would become a Python object that stays.
        wanted = []
        for at, event in enumerate(events):
            kind = self._kind(event)
            if kind is Kind.MEMORY:
                self._memory(event)
            elif kind is not Kind.NOISE:
                wanted.append(at)
        wanted.sort(key=lambda at: (events[at].offset_ps << _DURATION_BITS) - events[at].duration_ps)
        for at in wanted:
            event = events[at]
            start = self.line.base_ps + event.offset_ps
            if self.stack and self.stack[-1].end <= start:
                self._close(start)
            self._event(event, self.kinds[event.metadata_id], start, start + event.duration_ps)
        self._close(None)
        if wanted:
            begin = self.line.base_ps + events[wanted[0]].offset_ps
            trace = self.trace
            trace.begin = begin if trace.begin is None else min(trace.begin, begin)
            trace.end = self.end if trace.end is None else max(trace.end, self.end)

    def _kind(self, event: Any) -> Kind:
        """Return the kind of `event`; the first one of a name stands for all of that name on this thread."""
        kind = self.kinds.get(event.metadata_id)
        if kind is None:
            stats = frozenset(self.plane.stats(event)) if event.stats else frozenset()
            kind = self.kinds[event.metadata_id] = host_kind(self.plane.names.get(event.metadata_id, ""), stats)
        return kind

    def _event(self, event: Any, kind: Kind, start: int, end: int) -> None:
        trace, name = self.trace, self.plane.names[event.metadata_id]
        stats = self._stats(event, kind)
        self.end = max(self.end, end)
        outer = self.stack[-1] if self.stack else _OUTSIDE
        if kind is Kind.OP:
            trace.ops.append(OpEvent(start, end, name, outer.executor, self.input_thread, outer.chain))
        elif kind is Kind.ITERATOR:
            stage = (start, stats.get("id"), stats.get("parent_id"))
            self.stack.append(_Open(end, kind, outer.executor, name, stage))
        elif kind is Kind.CAPTURED:
            self._captured(stats)
        elif kind is Kind.MARKER:
            group = stats.get("group_id")
            if stats.get("no_step"):
                # The probe's word for what is no part of a step: the draw that finds a loop's input at its end.
                trace.pauses.append(start)
                return
            trace.markers.append(Marker(start, end, stats.get("step_num", 0), self.line.id, group))
        elif kind is Kind.FUNCTION:
            mode, count = str(stats.get("tf_function_call")), int(stats.get("tracing_count") or 0)
            trace.functions.append(CallEvent(start, end, name, self.line.id, True, mode, count))
        elif kind is Kind.CONTAINER:
            trace.runtime[self.line.id].append((start, end))
            if name == "EagerKernelExecute":
                trace.runs.append((start, end))
        elif kind is Kind.EAGER:
            self._eager(name, stats, start, end)
        elif kind is Kind.LAUNCH:
            self._launch(name, stats, start, end)
        self._wait(kind, name, start, end, stats)

    def _stats(self, event: Any, kind: Kind) -> dict[str, Any]:
        """Return what is needed of the stats of `event`: most have some, and few are worth their parsing."""
        wanted = self.needed.get(kind, self.always)
        return self.plane.stats(event, wanted) if wanted and event.stats else _NO_STATS

    def _wait(self, kind: Kind, name: str, start: int, end: int, stats: dict[str, Any]) -> None:
        """Keep the interval for the breakdown; what tf.data does ahead on its own threads is no part of a step."""
        if kind not in _IN_BUCKETS or (kind is Kind.OP and op_type(name) in CALLS):
            return
        if self.input_thread and kind is not Kind.INPUT and "group_id" not in stats:
            return
        self.trace.add(kind, start, end, stats.get("group_id"))

    def _memory(self, event: Any) -> None:
        stats = self.plane.stats(event, MEMORY_STATS)
        name = str(stats.get("allocator_name") or "")
        if name.startswith(ON_GPU):
            self.trace.memory[name].append(level_of(self.line.base_ps + event.offset_ps, stats))

    def _captured(self, stats: dict[str, Any]) -> None:
        inside = next((frame for frame in reversed(self.stack) if frame.stage), None)
        if "id" in stats:
            self.trace.captured[stats["id"]] = (None, "") if inside else self.last_stage

    def _eager(self, name: str, stats: dict[str, Any], start: int, end: int) -> None:
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

    def _launch(self, name: str, stats: dict[str, Any], start: int, end: int) -> None:
        if name.startswith("ExecutorState::Process"):
            executor = stats.get("id")
            chain = self.stack[-1].chain if self.stack else ""
            self.stack.append(_Open(end, Kind.LAUNCH, executor, chain))
            if executor is not None:
                self.trace.executor_ps[executor] += end - start
        elif "correlation_id" in stats:
            self.trace.launches.setdefault(stats["correlation_id"], start)

    def _close(self, now: int | None) -> None:
        """Drop the events that ended before `now` (all of them without it) and account the stages among them."""
        while self.stack and (now is None or self.stack[-1].end <= now):
            frame = self.stack.pop()
            if frame.stage is None:
                continue
            start, own, parent = frame.stage
            length = frame.end - start
            self.trace.stages.append(
                StageEvent(start, frame.end, length - frame.nested_ps, frame.chain, own, parent)
            )
            # The thread of a parallel stage calls its input first, then the function: the input names the stage.
            self.last_stage = (parent, frame.chain.rpartition("::")[0])
            outer = next((below for below in reversed(self.stack) if below.stage), None)
            if outer:
                outer.nested_ps += length


def is_python(event: OpEvent) -> bool:
    """Say whether `event` runs Python code from inside the runtime."""
    return op_type(event.name) in PYTHON_OPS
