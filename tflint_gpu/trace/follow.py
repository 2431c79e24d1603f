"""Finds traced lines again in files that were edited since: by the text of each line, remembered as a hash."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tflint_gpu.findings import Location
from tflint_gpu.trace.evidence import Evidence, Spot

#: Hexadecimal digits that stand for a line.
DIGITS = 8
#: What stands for a line without code: blank, or a comment alone.
NO_CODE = "0" * DIGITS

#: A line of a file: the cell it is in (notebooks) and its number there, both from 1.
Place = tuple[int | None, int]

_LINE_END = re.compile(r"\r\n|\r|\n")


def remember(path: str, raw: bytes) -> dict[str, str]:
    """Return what stands for the lines of the file `path`: by `path`, or by ``path#cell`` for cells of a notebook.

    Each line is `DIGITS` hexadecimal digits, so that evidence holds no source code.
    """
    return {_key(path, cell): "".join(map(_hash, lines)) for cell, lines in _texts(path, raw).items()}


def _key(path: str, cell: int | None) -> str:
    return path if cell is None else f"{path}#{cell}"


def _texts(path: str, raw: bytes) -> dict[int | None, list[str]]:
    """Return the lines of a file under None, those of a notebook by code cell; empty where it cannot be read."""
    if not path.endswith(".ipynb"):
        return {None: _LINE_END.split(_decoded(raw))}
    try:
        cells = json.loads(raw)["cells"]
        sources = {number: cell["source"] for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"}
    except (ValueError, LookupError, TypeError):
        return {}
    return {
        number: _LINE_END.split(source if isinstance(source, str) else "".join(source))
        for number, source in sources.items()
    }


def _decoded(raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding, errors="replace")
    except (SyntaxError, LookupError):
        return raw.decode("utf-8", errors="replace")


def _hash(line: str) -> str:
    text = line.rstrip()
    if not text or text.lstrip().startswith("#"):
        return NO_CODE
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=DIGITS // 2).hexdigest()


@dataclass(frozen=True)
class Edit:
    """What became of the code lines of one file: `old` and `new` list them in order, `moved` pairs their indices.

    `moved` goes from `new` to `old`: a statement that still stands has indices there that follow each other.
    """

    old: tuple[Place, ...]
    new: tuple[Place, ...]
    moved: Mapping[int, int]

    @property
    def only_moved(self) -> bool:
        """Whether all code is as it was, in the same order: blank lines and comments came or went."""
        return len(self.old) == len(self.new) == len(self.moved)

    def target(self, place: Place) -> Place | None:
        """Return where the old line `place` is now, None where it is gone."""
        return self.places.get(place)

    @property
    def places(self) -> dict[Place, Place]:
        """Every old line that still stands, and where."""
        return {self.old[old]: self.new[new] for new, old in self.moved.items()}

    def stands(self, where: Location) -> bool:
        """Say whether the code on the lines of `where` (in the new file) is as it was, without gap or addition."""
        inside = [
            index
            for index, (cell, line) in enumerate(self.new)
            if cell == where.cell and where.line <= line <= where.end_line
        ]
        before = [self.moved.get(index) for index in inside]
        first = before[0] if before else None
        return first is not None and before == list(range(first, first + len(before)))


def compare(old: Mapping[int | None, str], new: Mapping[int | None, str]) -> Edit:
    """Return what became of a file whose lines, by cell, are remembered as `old` and are now `new`."""
    import difflib

    before, after = _code(old), _code(new)
    matcher = difflib.SequenceMatcher(
        None, [text for _, text in before], [text for _, text in after], autojunk=False
    )
    moved = {block.b + at: block.a + at for block in matcher.get_matching_blocks() for at in range(block.size)}
    return Edit(tuple(place for place, _ in before), tuple(place for place, _ in after), moved)


def _code(cells: Mapping[int | None, str]) -> list[tuple[Place, str]]:
    """Return the code lines of a file in order, with what stands for each."""
    return [
        ((cell, at // DIGITS + 1), text[at : at + DIGITS])
        for cell, text in sorted(cells.items(), key=lambda item: item[0] or 0)
        for at in range(0, len(text), DIGITS)
        if text[at : at + DIGITS] != NO_CODE
    ]


@dataclass(frozen=True)
class Followed:
    """Evidence whose lines are those of today's files, and what became of each file that was edited since."""

    evidence: Evidence
    edits: Mapping[str, Edit] = field(default_factory=dict)


def follow(evidence: Evidence, read: Callable[[str], bytes | None]) -> Followed:
    """Return `evidence` with its lines where they stand today; `read` gives the bytes of a file, None without it.

    Files that are as they were, and those of which no lines are remembered, stay as they are.
    """
    edits = {}
    for path, recorded in evidence.sources.items():
        old = _cells(path, evidence.lines)
        raw = read(path) if old else None
        if raw is not None and _digest(raw) != recorded:
            edits[path] = compare(old, _cells(path, remember(path, raw)))
    if not edits:
        return Followed(evidence)
    places = {path: edit.places for path, edit in edits.items()}
    moved = _moved(evidence, places)
    return Followed(replace(moved, executed=_executed(evidence, places)), edits)


def _cells(path: str, lines: Mapping[str, str]) -> dict[int | None, str]:
    """Return the remembered lines of the file `path` by cell."""
    if path in lines:
        return {None: lines[path]}
    start = f"{path}#"
    return {int(key[len(start) :]): text for key, text in lines.items() if key.startswith(start)}


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _executed(evidence: Evidence, places: Mapping[str, dict[Place, Place]]) -> dict[str, tuple[int, ...]]:
    """Return the lines that ran, by where they are today; those that are gone are left out."""
    ran: dict[str, list[int]] = {}
    for key, lines in evidence.executed.items():
        path, _, cell = key.rpartition("#") if "#" in key and key not in evidence.sources else (key, "", "")
        if path not in places:
            ran[key] = list(lines)
            continue
        # An edited file stays known as one of which lines ran, even where all of these are gone.
        ran.setdefault(_key(path, int(cell) if cell else None), [])
        for line in lines:
            now = places[path].get((int(cell) if cell else None, line))
            if now is not None:
                ran.setdefault(_key(path, now[0]), []).append(now[1])
    return {key: tuple(sorted(lines)) for key, lines in ran.items()}


def _moved(value: Any, places: Mapping[str, dict[Place, Place]]) -> Any:
    """Return `value` with every `Spot` in it where its line is today; one whose line is gone becomes None.

    In a sequence it is left out, alone or as the head of a pair.
    """
    if isinstance(value, Spot):
        if value.path not in places:
            return value
        now = places[value.path].get((value.cell, value.line))
        return None if now is None else replace(value, cell=now[0], line=now[1])
    if isinstance(value, tuple):
        return tuple(_kept(value, places))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _moved(getattr(value, each.name), places) for each in dataclasses.fields(value)}
        return replace(value, **changed)
    return value


def _kept(values: Iterable[Any], places: Mapping[str, dict[Place, Place]]) -> Iterable[Any]:
    for value in values:
        now = _moved(value, places)
        head = value[0] if isinstance(value, tuple) and value else value
        if not isinstance(head, Spot) or _moved(head, places) is not None:
            yield now
