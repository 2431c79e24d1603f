"""The text of a source file: bytes decoded as Python would, notebook cells joined, places told apart."""

from __future__ import annotations

import sys
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tflint_gpu.findings import Location, shown_path

if TYPE_CHECKING:
    import ast

_BOM = b"\xef\xbb\xbf"
#: Bytes without which a file holds no suppression, so that it need not be read as tokens.
SUPPRESSION_MARKERS = (b"tflint-gpu", b"tflint_gpu:", b"TFG", b"tfg")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, order=True)
class Error:
    """A file, or a part of one, that could not be read; `message` is one sentence that says what to do.

    `fatal` is False for a notebook cell that is left out: the rest of the file is checked all the same.
    """

    path: str
    line: int
    message: str
    cell: int | None = None
    fatal: bool = True

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell is not None else ""
        return f"{shown_path(self.path)}{cell}:{self.line}: {self.message}"


class ReadError(Exception):
    """A file has no text that could be checked; `error` says why. Other files go on."""

    def __init__(self, error: Error) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell inside the joined text of a notebook.

    `number` counts all cells from 1, `first` is the joined line (from 1) that its line 1 became.
    """

    number: int
    first: int
    lines: int


@dataclass(frozen=True)
class Source:
    """The text of one module and the way back from its lines to the file.

    `text` has ``\\n`` line ends and no byte order mark; `encoding`, `newline` and `bom` say what the file had.
    In a notebook `text` is all Python cells in order with magics masked line by line, and `original` the same
    lines as the user wrote them. `name` is the path that imports see: `path`, but for a ``%%writefile`` cell the
    file it writes; those are in `written`.
    """

    path: str
    text: str
    name: str = ""
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False
    cells: tuple[Cell, ...] = ()
    written: tuple[Source, ...] = ()
    original: str | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `text`, without their ends."""
        return self.text.split("\n")

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    @cached_property
    def _firsts(self) -> list[int]:
        return [cell.first for cell in self.cells]

    @cached_property
    def _shown(self) -> list[str]:
        return self.lines if self.original is None else self.original.split("\n")

    def column(self, line: int, utf8_column: int) -> int:
        """Return the column, from 1 in characters, of a byte offset that `ast` gave for joined `line`."""
        if self._ascii:
            return utf8_column + 1
        text = self.lines[line - 1]
        if text.isascii():
            return utf8_column + 1
        return len(text.encode()[:utf8_column].decode(errors="ignore")) + 1

    def locate(self, line: int) -> tuple[int | None, int]:
        """Return cell and line inside it of a joined `line`; outside notebooks None and the line itself."""
        if not self.cells:
            return None, line
        cell = self.cells[max(bisect_right(self._firsts, line) - 1, 0)]
        return cell.number, line - cell.first + 1

    def joined(self, line: int, cell: int | None) -> int:
        """Return the joined line of a `line` inside `cell`: `locate` backwards."""
        if cell is None:
            return line
        return next(c.first for c in self.cells if c.number == cell) + line - 1

    def location(self, line: int, column: int, end_line: int, end_column: int) -> Location:
        """Return the place of a range that `ast` gave: joined lines and UTF-8 byte offsets."""
        cell, start = self.locate(line)
        return Location(
            self.path,
            start,
            self.column(line, column),
            start + end_line - line,
            self.column(end_line, end_column),
            cell,
        )

    def place(self, node: ast.expr | ast.stmt) -> Location:
        """Return where `node` of the tree that `parse` made stands."""
        return self.location(
            node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
        )

    def line(self, line: int, cell: int | None = None) -> str:
        """Return a line as the user wrote it, "" past the end."""
        joined = self.joined(line, cell)
        return self._shown[joined - 1] if joined <= len(self._shown) else ""

    def parse(self, errors: list[Error] | None = None) -> ast.Module:
        """Return the syntax tree; raises `ReadError` where the text is not Python.

        In a notebook the cells that are not Python are left out and told in `errors`.
        """
        try:
            return _tree(self.text)
        except SyntaxError as problem:
            if not self.cells:
                raise ReadError(Error(self.path, problem.lineno or 1, syntax_sentence(problem))) from None
        except (RecursionError, MemoryError):
            raise ReadError(Error(self.path, 1, "nested too deeply to be read; exclude it")) from None
        return self._parse_cell_by_cell(errors if errors is not None else [])

    def _parse_cell_by_cell(self, errors: list[Error]) -> ast.Module:
        kept = list(self.lines)
        for cell in self.cells:
            span = slice(cell.first - 1, cell.first - 1 + cell.lines)
            try:
                _tree("\n".join(kept[span]))
            except (SyntaxError, RecursionError, MemoryError) as problem:
                line = (problem.lineno if isinstance(problem, SyntaxError) else None) or 1
                errors.append(
                    Error(self.path, line, "this cell is not Python and was left out", cell.number, fatal=False)
                )
                kept[span] = [""] * cell.lines
        return _tree("\n".join(kept))


def _tree(text: str) -> ast.Module:
    import ast
    import warnings

    with warnings.catch_warnings():
        # Invalid escapes in other people's strings are none of our business.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except ValueError as problem:
            raise SyntaxError(str(problem)) from None


def syntax_sentence(problem: SyntaxError) -> str:
    """Say in one sentence what is wrong with a text that Python's parser refused, and what to do."""
    reason = (problem.msg or "invalid syntax").rstrip(".")
    if "Missing parentheses in call to" in reason:
        return f"not Python 3: {reason}; convert it or exclude it"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"not valid Python {version}: {reason}; correct it or exclude it"


def decode(path: str, raw: bytes) -> Source:
    """Return the text of a Python file, decoded as Python itself would; raises `ReadError`."""
    if raw.startswith(_UTF16):
        raise ReadError(Error(path, 1, "encoded in UTF-16, which Python does not read; save it as UTF-8"))
    if b"\0" in raw:
        raise ReadError(Error(path, 1, "binary, not Python source; rename it or exclude it"))
    encoding = _encoding(path, raw)
    bom = raw.startswith(_BOM)
    try:
        text = raw[3:].decode(encoding) if bom else raw.decode(encoding)
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise ReadError(
            Error(path, line, f"not valid {encoding}; save it as UTF-8 or declare its encoding in line 1")
        ) from None
    newline = "\n"
    if "\r" in text:
        crlf = text.count("\r\n")
        newline = "\r\n" if crlf * 2 >= text.count("\n") and crlf else "\n" if "\n" in text else "\r"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Source(path, text, name=path, encoding=encoding, newline=newline, bom=bom)


def _encoding(path: str, raw: bytes) -> str:
    # The declaration stands in one of the first two lines; most files have none, and `tokenize` costs its import.
    end = raw.find(b"\n", raw.find(b"\n") + 1)
    if b"coding" not in (raw if end < 0 else raw[:end]):
        return "utf-8"
    import io
    import tokenize

    try:
        encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError as problem:
        raise ReadError(
            Error(path, 1, f"declares an encoding Python does not know ({problem.msg}); declare utf-8")
        ) from None
    return "utf-8" if encoding == "utf-8-sig" else encoding
