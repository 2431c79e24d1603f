"""The code frame: the lines a finding stands on, with their numbers and a mark under the place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from tflint_gpu.findings import Location

#: Lines of a long statement that are shown; what is between the first and the last of them is left out.
_MOST_LINES = 6
_WIDTH = 100
_TAB = "    "
#: Control characters, other ends of lines, and what turns the direction of writing around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def frame(lines: Sequence[str], where: Location) -> list[str]:
    """Return the frame of `where` as lines of text, empty where the file's `lines` do not reach that far.

    One line is marked by carets, several by a sign at the margin.
    """
    if not 0 < where.line <= len(lines):
        return []
    last = min(max(where.end_line, where.line), len(lines))
    margin = len(str(last))
    if last == where.line:
        text, carets = _marked(lines[last - 1], where.column, where.end_column)
        return [f"  {last:>{margin}} | {text}", f"  {'':>{margin}} | {carets}"]
    shown = range(where.line, last + 1)
    framed = [f"> {number:>{margin}} | {_cut(_plain(lines[number - 1]), 0)}" for number in shown]
    if len(framed) > _MOST_LINES:
        framed[_MOST_LINES - 2 : -1] = [f"> {'…':>{margin}} |"]
    return framed


def _marked(line: str, column: int, end_column: int) -> tuple[str, str]:
    """Return the line as shown, and the carets under its columns (from 1, the end exclusive)."""
    end = min(max(end_column - 1, column), len(line)) if end_column > column else column
    before, inside = _plain(line[: column - 1]), _plain(line[column - 1 : end])
    # A far column moves the window, so that the place is always in it.
    skip = max(0, _cells(before) + min(_cells(inside), _WIDTH // 2) - _WIDTH)
    room = _WIDTH - (_cells(before) - skip)
    return _cut(_plain(line), skip), " " * (_cells(before) - skip) + "^" * max(1, min(_cells(inside), room))


def _plain(text: str) -> str:
    """Return `text` with spaces for tabs, and one visible sign for each that would tell a terminal something."""
    return _CONTROL.sub(_picture, text.replace("\t", _TAB))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    # Unicode has pictures of the oldest control characters, in their order.
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _cut(text: str, skip: int) -> str:
    if skip:
        text = "…" + text[skip + 1 :]
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _cells(text: str) -> int:
    """Return how many columns of a terminal `text` takes."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )
