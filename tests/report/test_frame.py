"""Code frames: the mark stands under the place, whatever the line is made of."""

from __future__ import annotations

import pytest

from tflint_gpu.findings import Location
from tflint_gpu.report.frame import frame


def marked(line: str, column: int, end_column: int) -> str:
    """Return the part of the shown line that the carets stand under."""
    text, carets = frame([line], Location("a.py", 1, column, 1, end_column))
    return "".join(sign for sign, mark in zip(text, carets, strict=False) if mark == "^")


@pytest.mark.parametrize(
    ("line", "place", "shown"),
    [
        ("ds = ds.map(f)", "ds.map(f)", "ds.map(f)"),
        ("\tds = ds.map(f)", "ds.map(f)", "ds.map(f)"),
        ("décodé = é.map(f)", "é.map(f)", "é.map(f)"),
    ],
    ids=["plain", "behind a tab", "behind accents"],
)
def test_carets_stand_under_the_place(line: str, place: str, shown: str) -> None:
    column = line.index(place) + 1
    assert marked(line, column, column + len(place)) == shown


@pytest.mark.parametrize(
    "sign", ["\x1b", "\x07", "\x00", "\x0c", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\u2028"]
)
def test_what_tells_a_terminal_something_is_shown_as_one_sign(sign: str) -> None:
    line = f"x = '{sign}]0;title{sign}[31m'; ds.map(f)"
    column = line.index("ds.map") + 1
    assert marked(line, column, column + len("ds.map(f)")) == "ds.map(f)"
    for end_line in (1, 2):
        shown = frame([line, line], Location("a.py", 1, column, end_line, column + 4))
        assert not any(sign in text for text in shown)
        assert "]0;title" in shown[0]


def test_wide_signs_take_two_columns() -> None:
    _, carets = frame(["x = '日本'; f()"], Location("a.py", 1, 11, 1, 14))
    assert carets == "    | " + " " * 12 + "^^^"


def test_a_far_place_is_moved_into_view() -> None:
    line = "x = [" + "1, " * 100 + "] + ds.map(f)"
    column = line.index("ds.map") + 1
    text, _ = frame([line], Location("a.py", 1, column, 1, column + 9))
    assert len(text) < 120
    assert marked(line, column, column + 9) == "ds.map(f)"


def test_several_lines_are_marked_at_the_margin() -> None:
    lines = ["a = (", "  b", "  .c())", "d"]
    assert frame(lines, Location("a.py", 1, 5, 3, 8)) == ["> 1 | a = (", "> 2 |   b", "> 3 |   .c())"]


def test_a_long_statement_is_cut_in_the_middle() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    assert frame(lines, Location("a.py", 1, 1, 30, 5)) == [
        "> " + f"{number:>2} | line {number}" for number in (1, 2, 3, 4)
    ] + [">  … |", "> 30 | line 30"]


def test_a_place_past_the_end_has_no_frame() -> None:
    assert frame(["x"], Location("a.py", 2, 1)) == []


def test_a_column_past_the_end_has_one_caret() -> None:
    assert frame(["x"], Location("a.py", 1, 2))[1] == "    |  ^"
