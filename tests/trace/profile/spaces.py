"""Builds small XPlane files, so that a test can state a profile and know what must come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tflint_gpu.trace.profile.messages import message

#: Real profiles of others; a checkout without them skips the tests that read them.
SHARED = Path(__file__).parents[4] / "shared" / "profiles"
needs_profiles = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared profiles are not here")

#: (name, start µs, length µs, stats)
Event = tuple[str, float, float, Mapping[str, Any]]


def at(name: str, start: float, length: float, **stats: Any) -> Event:
    return name, start, length, stats


def plane(name: str, lines: Mapping[str, Sequence[Event]], facts: Mapping[str, Any] | None = None) -> bytes:
    """Return a serialised plane of lines of events."""
    built = message("XPlane")(name=name.encode())
    names: dict[str, int] = {}
    stats: dict[str, int] = {}
    built.stats.extend(_stat(key, value, stats) for key, value in (facts or {}).items())
    for number, (title, events) in enumerate(lines.items(), 1):
        line = message("XLine")(id=number, name=title.encode(), timestamp_ns=1000)
        for event, start, length, about in events:
            raw = line.events.add(metadata_id=names.setdefault(event, len(names) + 1))
            raw.offset_ps, raw.duration_ps = round(start * 1e6), round(length * 1e6)
            raw.stats.extend(_stat(key, value, stats).SerializeToString() for key, value in about.items())
        built.lines.append(line.SerializeToString())
    for text, number in names.items():
        entry = built.event_metadata.add(key=number)
        entry.value.id, entry.value.name = number, text.encode()
    for text, number in stats.items():
        entry = built.stat_metadata.add(key=number)
        entry.value.id, entry.value.name = number, text.encode()
    return built.SerializeToString()


def _stat(name: str, value: Any, known: dict[str, int]) -> Any:
    stat = message("XStat")(metadata_id=known.setdefault(name, len(known) + 1))
    if isinstance(value, str):
        stat.str_value = value.encode()
    else:
        stat.int64_value = value
    return stat


def write(path: Path, *planes: bytes) -> Path:
    """Write `planes` as the profile `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(message("XSpace")(planes=list(planes)).SerializeToString())
    return path


def gpu(lines: Mapping[str, Sequence[Event]], number: int = 0) -> bytes:
    return plane(
        f"/device:GPU:{number}", lines, {"compute_cap_major": 8, "compute_cap_minor": 0, "core_count": 108}
    )


def host(lines: Mapping[str, Sequence[Event]]) -> bytes:
    return plane("/host:CPU", lines)
