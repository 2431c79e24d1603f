"""A file as fixes see it: edits worked out on its text, and applied to its bytes."""

from __future__ import annotations

import ast
import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tflint_gpu.findings import Change, Edit, Location
from tflint_gpu.fixes.kinds import load_kind
from tflint_gpu.fixes.notebook import cell_text, replace_cell
from tflint_gpu.fixes.places import DeclinedError, Script, Span, Splice
from tflint_gpu.fixes.site import Site
from tflint_gpu.source.files import SourceFile
from tflint_gpu.source.texts import ReadError, Source

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Document:
    """One file: its `raw` bytes, and the scripts in it (one, but for notebooks with ``%%writefile`` cells)."""

    path: str
    raw: bytes
    sources: tuple[Source, ...]
    scripts: tuple[Script, ...]

    def edits(self, change: Change, tensorflow: tuple[int, int]) -> tuple[Edit, ...]:
        """Return the edits that make `change`, in the order of the text; raises `DeclinedError`."""
        if any(place.path != self.path for place in (change.location, *change.places)):
            raise DeclinedError("the places of the fix are in different files")
        source, script = self._holding(change.location.cell)
        site = Site(
            script,
            self._span(change.location, source),
            dict(change.parameters),
            tensorflow,
            tuple(self._span(place, source) for place in change.places),
        )
        made = sorted(load_kind(change.kind)(site), key=lambda splice: (splice.start, splice.end))
        _keep_comments(script, made)
        return tuple(Edit(_location(source, script, splice), splice.text) for splice in made)

    def _span(self, where: Location, source: Source) -> Span:
        if source.cells and not any(part.number == where.cell for part in source.cells):
            raise DeclinedError("the places of the fix are in different files")
        return (
            (source.joined(where.line, where.cell), where.column - 1),
            (source.joined(where.end_line, where.cell), where.end_column - 1),
        )

    def apply(self, edits: Iterable[Edit]) -> bytes:
        """Return the bytes with `edits` made, which must not overlap.

        Raises `DeclinedError` where the result is no Python or could not be written in the file's encoding.
        """
        if self.scripts[0].notebook:
            return self._apply_to_cells(edits)
        bom = _BOM if self.sources[0].bom else b""
        text = _spliced(self.scripts[0].text, edits)
        try:
            ast.parse(text)
            return bom + text.encode(self.sources[0].encoding)
        except (SyntaxError, ValueError, RecursionError) as problem:
            raise DeclinedError(f"the changed file would not parse ({problem})") from None

    def _apply_to_cells(self, edits: Iterable[Edit]) -> bytes:
        bom = _BOM if self.raw.startswith(_BOM) else b""
        text = self.raw[len(bom) :].decode()
        cells: dict[int, list[Edit]] = defaultdict(list)
        for edit in edits:
            cells[edit.location.cell or 1].append(edit)
        for number, its in cells.items():
            old = cell_text(text, number)
            if "\r\n" in old:
                its = [replace(edit, text=edit.text.replace("\n", "\r\n")) for edit in its]
            new = _spliced(old, its)
            text = replace_cell(text, number, new)
            json.loads(text)
            if cell_text(text, number) != new:
                raise DeclinedError("the notebook could not be written as it was laid out")
        return bom + text.encode()

    def follow(self, new: Document, edits: Iterable[Edit], place: tuple[int, int, int | None]) -> tuple[int, int]:
        """Return line and column that `place` (line, column, cell) has in `new`, which `edits` made of this."""
        line, column, cell = place
        source, script = self._holding(cell)
        _, other = new._holding(cell)
        start = script.offset(source.joined(line, cell), column - 1)
        shift = 0
        for edit in set(edits):
            where = edit.location
            if not any(part.number == where.cell for part in source.cells) and source.cells:
                continue
            first = script.offset(source.joined(where.line, where.cell), where.column - 1)
            last = script.offset(source.joined(where.end_line, where.cell), where.end_column - 1)
            if first < start:
                shift += len(edit.text) - (last - first)
        moved, column = other.place(start + shift)
        return new._holding(cell)[0].locate(moved)[1], column + 1

    def _holding(self, cell: int | None) -> tuple[Source, Script]:
        for source, script in zip(self.sources, self.scripts, strict=True):
            if cell is None or any(part.number == cell for part in source.cells):
                return source, script
        raise DeclinedError("the cell is no Python")


def _keep_comments(script: Script, splices: Sequence[Splice]) -> None:
    """Raise `DeclinedError` where a comment would be lost: it may say why the code is as it is."""
    if not any("#" in script.text[splice.start : splice.end] for splice in splices):
        return
    written = "\n".join(splice.text for splice in splices)
    for start, comment in script.comments.items():
        gone = any(splice.start <= start < splice.end for splice in splices)
        if gone and comment not in written:
            raise DeclinedError(f"the comment in line {script.place(start)[0]} would be lost")


def _location(source: Source, script: Script, splice: Splice) -> Location:
    """Return the range of `splice` as reports name it; raises `DeclinedError` where it is no range of one cell."""
    start, end = script.place(splice.start), script.place(splice.end)
    if not source.cells:
        return Location(source.path, start[0], start[1] + 1, end[0], end[1] + 1)
    cell, inside = source.locate(start[0])
    if end[1] == 0 < splice.end - splice.start and source.locate(end[0]) != (cell, inside + end[0] - start[0]):
        # The last line of a cell has no line end: the one in front of it goes instead.
        end = script.place(splice.end - 1)
        start = script.place(splice.start - 1) if start[1] == 0 and inside > 1 else start
        inside = source.locate(start[0])[1]
    if source.locate(end[0])[0] != cell:
        raise DeclinedError("the edit would reach over several cells")
    if source.original is not None and _cut(source.original, start, end) != _cut(source.text, start, end):
        raise DeclinedError("a magic stands in what would be changed")
    return Location(source.path, inside, start[1] + 1, inside + end[0] - start[0], end[1] + 1, cell)


def _cut(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    lines = text.split("\n")[start[0] - 1 : end[0]]
    lines[-1] = lines[-1][: end[1]]
    return "\n".join(lines)[start[1] :]


@functools.lru_cache(maxsize=16)
def open_document(path: str, raw: bytes) -> Document:
    """Return the file at `path` that holds `raw`, ready for edits; raises `DeclinedError` if it is unreadable."""
    from pathlib import Path

    kind = "notebook" if path.endswith(".ipynb") else "python"
    try:
        source = SourceFile(path, Path(path), kind, content=raw).read()
        if kind == "notebook":
            sources = (source, *source.written)
            scripts = tuple(Script(each.text, each.parse(), notebook=True) for each in sources)
            return Document(path, raw, sources, scripts)
        text = raw[len(_BOM) if source.bom else 0 :].decode(source.encoding)
        if text.encode(source.encoding) != raw[len(_BOM) if source.bom else 0 :]:
            raise DeclinedError(f"the encoding {source.encoding} cannot be written back without change")
        return Document(path, raw, (source,), (Script(text, source.parse()),))
    except ReadError as problem:
        raise DeclinedError(problem.error.message) from None


def merged(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return `edits` in the order of the text, what is inserted at one place as one edit.

    Raises `DeclinedError` where two of them want the same characters.
    """
    whole: list[Edit] = []
    for edit in sorted(edits, key=lambda item: item.location):
        last = whole[-1] if whole else None
        if last and last.location == edit.location and _start(edit.location) == _end(edit.location):
            whole[-1] = Edit(edit.location, last.text + edit.text)
        elif last and _file(last.location) == _file(edit.location) and _end(last.location) > _start(edit.location):
            raise DeclinedError("two parts of the fix want the same characters")
        else:
            whole.append(edit)
    return tuple(whole)


def overlaps(one: Sequence[Edit], other: Sequence[Edit]) -> bool:
    """Say whether two sets of edits touch the same characters; the very same edit (an import) is no clash."""
    return any(left != right and _clash(left.location, right.location) for left in one for right in other)


def _clash(left: Location, right: Location) -> bool:
    return _file(left) == _file(right) and _start(left) <= _end(right) and _start(right) <= _end(left)


def _file(where: Location) -> tuple[str, int | None]:
    return where.path, where.cell


def _start(where: Location) -> tuple[int, int]:
    return where.line, where.column


def _end(where: Location) -> tuple[int, int]:
    return where.end_line, where.end_column


def _spliced(text: str, edits: Iterable[Edit]) -> str:
    script = Script(text, ast.Module([], []))
    for edit in sorted(set(edits), key=lambda item: item.location, reverse=True):
        where = edit.location
        start = script.offset(where.line, where.column - 1)
        end = script.offset(where.end_line, where.end_column - 1)
        text = text[:start] + edit.text + text[end:]
    return text
