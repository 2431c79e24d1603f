"""Opens an XPlane file (``*.xplane.pb``): planes of lines of events, one line in memory at a time.

Times are integers in picoseconds on the clock of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.profile.messages import message

#: The value fields of an XStat, as they are tried; protobuf keeps exactly one of them.
_VALUES = ("uint64_value", "int64_value", "str_value", "ref_value", "double_value", "bytes_value")
#: How protobuf writes "field 1, a varint": what every XStat begins with.
_ID_TAG = 0x08
#: "Field 3" and "field 4, a varint": the integers of an XStat.
_INT64_TAG = 0x20
_INTEGER_TAGS = (0x18, _INT64_TAG)


@dataclass(frozen=True)
class Line:
    """A stream or a thread. `events` are raw XEvents; an event starts at ``base_ps + event.offset_ps``."""

    name: str
    id: int
    base_ps: int
    events: Any


@dataclass(frozen=True)
class Plane:
    """A device or a host: its name, its own facts, and the names that its events refer to by number."""

    name: str
    facts: dict[str, Any]
    names: dict[int, str]
    stat_names: dict[int, str]
    raw_lines: tuple[bytes, ...]

    def lines(self) -> Iterator[Line]:
        """Yield the lines, each parsed when it is asked for."""
        for raw in self.raw_lines:
            line = message("XLine").FromString(raw)
            yield Line(_text(line.name or line.display_name), line.id, line.timestamp_ns * 1000, line.events)

    def stats(self, event: Any, wanted: frozenset[str] | None = None) -> dict[str, Any]:
        """Return the stats of a raw `event` by name, all or the `wanted` ones; text as `str`."""
        parse, names = message("XStat").FromString, self.stat_names
        if wanted is None:
            return dict([_pair(parse(raw), names) for raw in event.stats])
        return dict([_fast_pair(raw, names) for raw in event.stats if names.get(_number(raw)) in wanted])


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
    """Parse a whole space; every line is parsed once here, so that later readers meet no torn one."""
    from google.protobuf.message import DecodeError

    try:
        planes = [_plane(raw) for raw in message("XSpace").FromString(data).planes]
        for plane in planes:
            if not plane.name.startswith(("/", "Task", "#")) or any(_strange(line) for line in plane.lines()):
                raise DecodeError("no plane of a profiler")
    except DecodeError:
        raise UserError(
            f"{path}: not a readable XPlane profile (truncated, damaged or another format); record it again"
        ) from None
    return planes


def _strange(line: Line) -> bool:
    """Say whether `line` has times that no profiler writes: damage that still parses."""
    return line.base_ps < 0 or any(event.duration_ps < 0 for event in line.events)


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


def _number(stat: bytes) -> int:
    """Return the metadata id of a serialised XStat without parsing the rest: it is the first field."""
    if stat[0] != _ID_TAG:
        return int(message("XStat").FromString(stat).metadata_id)
    return stat[1] if stat[1] < 128 else (stat[1] & 127) | (stat[2] << 7)


def _fast_pair(stat: bytes, stat_names: dict[int, str]) -> tuple[str, Any]:
    """Return what `_pair` does, of a serialised stat: an integer, which most are, without a protobuf object."""
    if stat[0] == _ID_TAG and stat[1] < 128 and stat[2] in _INTEGER_TAGS:
        value = shift = 0
        for byte in stat[3:]:
            value |= (byte & 127) << shift
            shift += 7
        signed = stat[2] == _INT64_TAG and value >= 1 << 63
        return stat_names.get(stat[1], ""), value - (1 << 64) if signed else value
    return _pair(message("XStat").FromString(stat), stat_names)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
