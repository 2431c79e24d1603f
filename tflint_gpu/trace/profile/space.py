"""Opens an XPlane file (``*.xplane.pb``): planes of lines of events, one line in memory at a time.

Times are integers in picoseconds on the clock of the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.profile.messages import message

#: The value fields of an XStat, as they are tried; protobuf keeps exactly one of them.
_VALUES = ("uint64_value", "int64_value", "str_value", "ref_value", "double_value", "bytes_value")
#: Tags of the fields of an XStat as protobuf writes them: its number, which comes first, and its usual values.
_ID_TAG, _UINT64_TAG, _INT64_TAG, _TEXT_TAG, _REF_TAG = 0x08, 0x18, 0x20, 0x2A, 0x38
_VARINT_TAGS = frozenset({_UINT64_TAG, _INT64_TAG, _REF_TAG})

#: What is read of every event, in C and in one go: a loop in Python would take seconds for a million of them, and
#: each time that an event is touched an object is made for it.
_COLUMNS = attrgetter("metadata_id", "offset_ps", "duration_ps")

Stats = dict[str, Any]


class DamagedError(Exception):
    """The file holds what no profiler writes, though its outer shell parses."""


@dataclass(frozen=True)
class Line:
    """A stream or a thread. `events` are raw XEvents; an event starts at ``base_ps + event.offset_ps``."""

    name: str
    id: int
    base_ps: int
    events: Any

    def columns(self) -> tuple[array[int], array[int], array[int]]:
        """Return of all events the number of the name, the offset and the length (ps), each in a column."""
        mixed = array("q", chain.from_iterable(map(_COLUMNS, self.events)))
        return mixed[0::3], mixed[1::3], mixed[2::3]


@dataclass(frozen=True)
class Plane:
    """A device or a host: its name, its own facts, and the names that its events refer to by number."""

    name: str
    facts: dict[str, Any]
    names: dict[int, str]
    stat_names: dict[int, str]
    raw_lines: tuple[bytes, ...]

    def lines(self) -> Iterator[Line]:
        """Yield the lines, each parsed when it is asked for; raises `DamagedError` where one cannot be."""
        from google.protobuf.message import DecodeError

        for raw in self.raw_lines:
            try:
                line = message("XLine").FromString(raw)
            except DecodeError:
                raise DamagedError from None
            if line.timestamp_ns < 0:
                raise DamagedError
            yield Line(_text(line.name or line.display_name), line.id, line.timestamp_ns * 1000, line.events)

    def stats(self, event: Any, wanted: frozenset[str] | None = None) -> Stats:
        """Return the stats of a raw `event` by name, all or the `wanted` ones; text as `str`."""
        return self.reader(wanted)(event)

    def reader(self, wanted: frozenset[str] | None = None) -> Callable[[Any], Stats]:
        """Return a function that reads the stats of raw events, all or the `wanted` ones.

        Make one for many events. Most stats are an integer or a text that stands in many events: these are read
        without a protobuf object, and every text is kept once.
        """
        stat_names = self.stat_names
        names = {number: name for number, name in stat_names.items() if wanted is None or name in wanted}
        texts: dict[bytes, str] = {}

        def read(event: Any) -> Stats:
            found: Stats = {}
            for raw in event.stats:
                if len(raw) < 4 or raw[0] != _ID_TAG:
                    continue
                number, tag, at = raw[1], raw[2], 3
                if number > 127:
                    number, at = _varint(raw, 1)
                    tag, at = raw[at], at + 1
                name = names.get(number)
                if name is None:
                    continue
                if tag in _VARINT_TAGS:
                    # Integers of one or two bytes here, since a call takes as long as all the rest.
                    value: Any = raw[at]
                    if value > 127:
                        if raw[at + 1] < 128:
                            value += (raw[at + 1] << 7) - 128
                        else:
                            value, _ = _varint(raw, at)
                    if tag == _REF_TAG:
                        value = stat_names.get(value, "")
                    elif tag == _INT64_TAG and value >= 1 << 63:
                        value -= 1 << 64
                elif tag == _TEXT_TAG:
                    value = texts.get(raw)
                    if value is None:
                        value = texts[raw] = _value(raw, stat_names)
                else:
                    value = _value(raw, stat_names)
                found[name] = value
            return found

        return read


def read_space(path: Path) -> list[Plane]:
    """Read the planes of the XPlane file `path`.

    Raises `UserError` where the file cannot be read, is empty, torn, or no XPlane file at all.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UserError(f"{path}: cannot read the profile: {problem.strerror}") from None
    if not data:
        raise UserError(f"{path}: the profile is empty; the run ended before it was written: record it again")
    planes = _parse_planes(data, path)
    if not any(plane.raw_lines or plane.facts for plane in planes):
        raise UserError(f"{path}: the profile holds no events; record it again")
    return planes


def _parse_planes(data: bytes, path: Path) -> list[Plane]:
    """Parse a whole space; its lines are parsed when they are read."""
    from google.protobuf.message import DecodeError

    try:
        planes = [_plane(raw) for raw in message("XSpace").FromString(data).planes]
    except DecodeError:
        raise damaged(path) from None
    if not all(plane.name.startswith(("/", "Task", "#")) for plane in planes):
        raise damaged(path)
    return planes


def damaged(path: Path) -> UserError:
    """Return what is told of a file that is no profile, or no longer one."""
    return UserError(
        f"{path}: not a readable XPlane profile (truncated, damaged or another format); record it again"
    )


def _plane(raw: bytes) -> Plane:
    plane = message("XPlane").FromString(raw)
    stat_names = {entry.key: _text(entry.value.name) for entry in plane.stat_metadata}
    return Plane(
        name=_text(plane.name),
        facts=dict(_pair(stat, stat_names) for stat in plane.stats),
        names={entry.key: _text(entry.value.name) for entry in plane.event_metadata},
        stat_names=stat_names,
        raw_lines=tuple(plane.lines),
    )


def _pair(stat: Any, stat_names: dict[int, str]) -> tuple[str, Any]:
    name = stat_names.get(stat.metadata_id, "")
    for field in _VALUES:
        if stat.HasField(field):
            value = getattr(stat, field)
            if field == "ref_value":
                return name, stat_names.get(value, "")
            return name, _text(value) if field == "str_value" else value
    return name, None


def _value(stat: bytes, stat_names: dict[int, str]) -> Any:
    return _pair(message("XStat").FromString(stat), stat_names)[1]


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return the integer of variable length that begins at `at`, and where it ends."""
    value = shift = 0
    while raw[at] > 127:
        value |= (raw[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | raw[at] << shift, at + 1


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
