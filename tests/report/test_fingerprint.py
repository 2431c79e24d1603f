"""Fingerprints: what changes them, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tflint_gpu.findings import Finding
from tflint_gpu.report.fingerprint import fingerprints
from tflint_gpu.report.texts import Texts

BEFORE = "def f(ds):\n    ds = ds.map(g)\n    return ds\n"


def name(text: str, line: int, finding: Callable[..., Finding], code: str = "TFG101", **parts: object) -> str:
    item = finding(code, ("a.py", line), **parts)
    return fingerprints([item], Texts(given={"a.py": text.encode()}))[item]


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ("import os\n\n\n" + BEFORE, 5),
        (BEFORE.replace("    ds = ds.map(g)", "    # why\n    ds = ds.map( g )  # how"), 3),
        (BEFORE.replace("ds.map(g)", "ds.map(\n        g\n    )"), 2),
        (BEFORE.replace("ds.map(g)", "ds.map(\n        g\n    )"), 3),
        (BEFORE.replace("\n", "\r\n"), 2),
    ],
    ids=["moved down", "comments and blanks", "split over lines", "found on a later line of it", "line ends"],
)
def test_layout_does_not_change_it(after: str, line: int, finding: Callable[..., Finding]) -> None:
    assert name(after, line, finding) == name(BEFORE, 2, finding)


@pytest.mark.parametrize(
    "changed",
    [
        {"text": BEFORE.replace("map(g)", "map(h)")},
        {"line": 3},
        {"code": "TFG102"},
        {"qualname": "C.f"},
    ],
    ids=["another statement", "another line", "another rule", "another function"],
)
def test_a_different_finding_has_another(changed: dict[str, object], finding: Callable[..., Finding]) -> None:
    other = {"text": BEFORE, "line": 2, "code": "TFG101", **changed}
    assert name(finding=finding, **other) != name(BEFORE, 2, finding)


def test_equals_are_counted(finding: Callable[..., Finding]) -> None:
    text = "ds = ds.map(g)\n" * 3
    items = [finding("TFG101", ("a.py", line)) for line in (1, 2, 3)]
    names = fingerprints(items, Texts(given={"a.py": text.encode()}))
    assert len(set(names.values())) == 3
    assert names[items[0]] == name("ds = ds.map(g)\n", 1, finding)


def test_a_compound_statement_counts_by_its_header(finding: Callable[..., Finding]) -> None:
    loop = "for x in ds:\n    step(x)\n"
    assert name(loop, 1, finding) == name(loop.replace("step(x)", "other(x)"), 1, finding)


def test_a_cell_with_magics_has_one_too(finding: Callable[..., Finding], tmp_path: Path) -> None:
    first = name("%time ds = ds.map(g)\nx = 1\n", 1, finding)
    assert first == name("\n%time ds = ds.map(g)\nx = 2\n", 2, finding)


def test_an_unreadable_file_still_gives_one(finding: Callable[..., Finding]) -> None:
    item = finding("TFG101", ("gone.py", 3))
    assert len(fingerprints([item], Texts(Path("nowhere")))[item]) == 32
