"""Running one kind of edit on a text in which its places are marked: «the site», ‹another place›, ¦a third¦."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable

import pytest

from tflint_gpu.findings import Change, Location
from tflint_gpu.fixes.document import open_document
from tflint_gpu.fixes.places import DeclinedError

Edited = Callable[..., str]


def _unmarked(text: str, path: str, cell: int | None) -> tuple[str, Location, tuple[Location, ...]]:
    """Return the text without marks, the site and the other places."""
    found: dict[str, list[Location]] = {"«": [], "‹": [], "¦": []}
    open_at: list[tuple[str, int, int]] = []
    line, column, plain = 1, 1, []
    for sign in text:
        if sign in "«‹" or (sign == "¦" and not any(kind == "¦" for kind, *_ in open_at)):
            open_at.append((sign, line, column))
        elif sign in "»›¦":
            kind, first, start = open_at.pop()
            found[kind].append(Location(path, first, start, line, column, cell))
        else:
            plain.append(sign)
            line, column = (line + 1, 1) if sign == "\n" else (line, column + 1)
    (site,) = found["«"]
    return "".join(plain), site, (*found["‹"], *found["¦"])


def _run(text: str, kind: str, parameters: dict[str, str], version: tuple[int, int], *, crlf: bool = False) -> str:
    plain, site, others = _unmarked(text, "a.py", None)
    raw = (plain.replace("\n", "\r\n") if crlf else plain).encode()
    document = open_document("a.py", raw)
    change = Change(kind, site, tuple(sorted(parameters.items())), others)
    try:
        after = document.apply(document.edits(change, version)).decode()
    except DeclinedError as problem:
        return str(problem)
    if crlf:
        assert "\n" not in after.replace("\r\n", "")
    return after.replace("\r\n", "\n")


def _in_notebook(text: str, kind: str, parameters: dict[str, str], version: tuple[int, int]) -> str:
    plain, site, others = _unmarked(text, "a.ipynb", 2)
    cells = ["# a title", plain.splitlines(keepends=True)]
    made = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": cells[0]},
            {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": cells[1]},
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    document = open_document("a.ipynb", json.dumps(made, indent=1).encode())
    change = Change(kind, site, tuple(sorted(parameters.items())), others)
    try:
        after = json.loads(document.apply(document.edits(change, version)))
    except DeclinedError as problem:
        return str(problem)
    return "".join(after["cells"][1]["source"])


@pytest.fixture
def edited() -> Edited:
    """Return a function (kind, marked text, parameters) -> the text after the edit, or why it was declined.

    The text may be indented. What comes out must be the same with CRLF, in a cell of a notebook, and, where all
    its lines are indented by levels, with tabs.
    """

    def edit(kind: str, marked: str, /, *, tensorflow: tuple[int, int] = (2, 15), **parameters: str) -> str:
        text = textwrap.dedent(marked)
        after = _run(text, kind, parameters, tensorflow)
        assert _run(text, kind, parameters, tensorflow, crlf=True) == after
        assert _in_notebook(text, kind, parameters, tensorflow) == after
        tabbed = re.sub(r"^( {4})+", lambda blanks: "\t" * (len(blanks[0]) // 4), text, flags=re.MULTILINE)
        levels = all(len(blanks) % 4 == 0 for blanks in re.findall(r"^ +", text, flags=re.MULTILINE))
        if tabbed != text and levels:
            expected = re.sub(r"^( {4})+", lambda blanks: "\t" * (len(blanks[0]) // 4), after, flags=re.MULTILINE)
            assert _run(tabbed, kind, parameters, tensorflow) == expected
        return after

    return edit
