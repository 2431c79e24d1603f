"""Editing one cell of a notebook file so that not another byte of its JSON moves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tflint_gpu.fixes.places import DeclinedError

_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[-+.\w]+")


#: Reads a JSON string from behind its opening quote; returns it and the offset behind the closing one.
_scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]


@dataclass(slots=True)
class Node:
    """A JSON value and where it stands in the text; `value` is a str, dict, list, or None for other scalars."""

    start: int
    end: int = 0
    value: str | dict[str, Node] | list[Node] | None = field(default=None)


def replace_cell(text: str, number: int, new: str) -> str:
    """Return the notebook `text` with the source of cell `number` (from 1) being `new`.

    Only the lines that differ are written anew. Raises `DeclinedError` where the file's layout is not understood.
    """
    source = _source(scan(text), number)
    if isinstance(source.value, str):
        return _swap(text, source.start, source.end, _dumped(text, [source], [new])[0])
    if not isinstance(source.value, list) or not source.value:
        raise DeclinedError("the cell's source is neither text nor lines")
    old = [str(node.value) for node in source.value]
    if new == "".join(old):
        return text
    first = _kept_in_front(old, new)
    front = sum(map(len, old[:first]))
    tail = _kept_behind(old[first:], new[front:])
    back = len(new) - sum(map(len, old[len(old) - tail :]))
    come = re.findall(r"[^\n]*\n|[^\n]+", new[front:back])
    if not come and first + tail < len(old):
        # Lines only go: a neighbour is written anew with them, so that the commas come out right.
        if first:
            first -= 1
            come = [old[first]]
        elif tail:
            come = [old[len(old) - tail]]
            tail -= 1
        else:
            come = [""]
    gone = source.value[first : len(old) - tail]
    between = _separator(text, source)
    if gone:
        fresh = between.join(_dumped(text, gone, come))
        return _swap(text, gone[0].start, gone[-1].end, fresh)
    written = between.join(_dumped(text, source.value, come))
    if first:
        at = source.value[first - 1].end
        return _swap(text, at, at, between + written)
    return _swap(text, source.value[0].start, source.value[0].start, written + between)


def cell_text(text: str, number: int) -> str:
    """Return the source of cell `number` exactly as the file holds it."""
    value = _source(scan(text), number).value
    return value if isinstance(value, str) else "".join(str(node.value) for node in _items(value))


def line_in_file(text: str, number: int, line: int) -> int | None:
    """Return the line of the file on which `line` of cell `number` stands; None where they do not match up."""
    try:
        source = _source(scan(text), number)
    except DeclinedError:
        return None
    items = _items(source.value)
    if any(str(item.value).count("\n") > 1 for item in items) or not 0 < line <= len(items):
        return None
    return text.count("\n", 0, items[line - 1].start) + 1


def _source(root: Node, number: int) -> Node:
    top = root.value
    if not isinstance(top, dict):
        raise DeclinedError("the file is not a notebook")
    sheets = _items(top["worksheets"].value) if "worksheets" in top else [root]
    cells = [
        cell
        for sheet in sheets
        if isinstance(sheet.value, dict) and "cells" in sheet.value
        for cell in _items(sheet.value["cells"].value)
    ]
    cell = cells[number - 1].value if number <= len(cells) else None
    source = (cell.get("source") or cell.get("input")) if isinstance(cell, dict) else None
    if source is None:
        raise DeclinedError(f"the notebook has no cell {number} with a source")
    return source


def _items(value: Any) -> list[Node]:
    return value if isinstance(value, list) else []


def _kept_in_front(old: Sequence[str], new: str) -> int:
    """Return how many parts of the source `new` begins with, whole lines at a time."""
    at = 0
    for count, part in enumerate(old):
        if not new.startswith(part, at) or not (part.endswith("\n") or not part or at + len(part) == len(new)):
            return count
        at += len(part)
    return len(old)


def _kept_behind(old: Sequence[str], new: str) -> int:
    """Return how many parts of the source `new` ends with, whole lines at a time."""
    end = len(new)
    for count, part in enumerate(reversed(old)):
        start = end - len(part)
        if not new.endswith(part, 0, end) or not (start == 0 or not part or new[start - 1] == "\n"):
            return count
        end = start
    return len(old)


def _separator(text: str, source: Node) -> str:
    items = _items(source.value)
    if len(items) > 1:
        return text[items[0].end : items[1].start]
    return "," + text[source.start + 1 : items[0].start]


def _dumped(text: str, old: Sequence[Node], new: Sequence[str]) -> list[str]:
    for ascii_only in (False, True):
        if all(json.dumps(node.value, ensure_ascii=ascii_only) == text[node.start : node.end] for node in old):
            return [json.dumps(line, ensure_ascii=ascii_only) for line in new]
    raise DeclinedError("the notebook escapes characters in an unusual way")


def _swap(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def scan(text: str) -> Node:
    """Return the JSON value in `text` with the place of every part; raises `DeclinedError` if it is not JSON."""
    try:
        return _scan(text, _skip(text, 0))
    except (ValueError, LookupError, RecursionError):
        raise DeclinedError("the file is not a notebook") from None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _scan(text: str, at: int) -> Node:
    node = Node(at)
    if text[at] == '"':
        node.value, node.end = _scanstring(text, at + 1, True)
    elif text[at] == "{":
        members: dict[str, Node] = {}
        at = _skip(text, at + 1)
        while text[at] != "}":
            key, at = _scanstring(text, at + 1, True)
            members[key] = _scan(text, _skip(text, _skip(text, at) + 1))
            at = _next(text, members[key].end)
        node.value, node.end = members, at + 1
    elif text[at] == "[":
        items: list[Node] = []
        at = _skip(text, at + 1)
        while text[at] != "]":
            items.append(_scan(text, at))
            at = _next(text, items[-1].end)
        node.value, node.end = items, at + 1
    else:
        scalar = _SCALAR.match(text, at)
        if scalar is None:
            raise ValueError
        node.end = scalar.end()
    return node


def _next(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
