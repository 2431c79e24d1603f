"""The benchmark of fixes: that it runs, and that each of its checks can fail."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

TRAINING = """\
import tensorflow as tf
ds = tf.data.Dataset.range(10000).map(lambda x: (x, x)).batch(256).with_options(tf.data.Options())
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse", run_eagerly=True)
model.fit(ds, epochs=3)
"""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the benchmark."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS.parent))
    return runpy.run_path(str(BENCHMARKS / "fixes.py"))


def test_a_project_is_fixed_on_a_copy(bench: dict[str, Any], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAINING)
    (project / "other.py").write_text("x = 1\n")
    tally = bench["Tally"]()
    diff = bench["fix"](project, tmp_path / "copy", [], tally)
    assert (project / "train.py").read_text() == TRAINING
    assert (tally.files, tally.lines, tally.changed, tally.again, tally.failures) == (2, 6, 1, 0, [])
    assert tally.fixed >= 1
    assert "+model.compile(" in diff
    table = bench["table"]({"safe": tally, "safe and unsafe": tally}, "project", 1)
    assert f"| safe | {tally.fixed} | 1 | {tally.added} | {tally.removed} | 0 | 0 |" in table


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("a.py", b"x = 1\n", b"x = (\n", "does not compile"),
        ("a.py", b"x = 1  # why\n", b"x = 2\n", "comments are lost: ['# why']"),
        ("a.py", b"x = 1\r\ny = 1\r\n", b"x = 2\ny = 1\n", "other line ends"),
        ("a.py", b"\xef\xbb\xbfx = 1\n", b"x = 2\n", "another mark of UTF-8"),
        ("a.py", b"x = 1", b"x = 2\n", "another end of the file"),
        ("a.py", b"if x:\n\ty = 1\n", b"if x:\n\ty = 1\nif z:\n    y = 2\n", "tabs and blanks are mixed"),
        ("a.ipynb", {"n": 1}, {"n": 2}, "more than the sources of cells changed"),
        ("a.ipynb", {"n": 1, "source": "x"}, {"n": 1, "source": "y"}, ""),
        ("a.py", b"x = 1  # why\n", b"# why\nx = 2\n", ""),
    ],
)
def test_each_check_can_fail(bench: dict[str, Any], name: str, old: Any, new: Any, problem: str) -> None:
    texts = [
        each
        if isinstance(each, bytes)
        else json.dumps({"cells": [{"cell_type": "code", **each}], "nbformat": 4}).encode()
        for each in (old, new)
    ]
    found = list(bench["problems"](name, *texts))
    assert len(found) == bool(problem)
    assert all(each.startswith(problem) for each in found)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([("TFG602", "a.py", 3)], [("TFG605", "a.py", 1)], []),
        ([("TFG602", "a.py", 3)], [("TFG605", "a.py", 3)], ["TFG605 came to a.py"]),
        ([("TFG602", "a.py", 3)], [("TFG605", "b.py", 1)], ["TFG605 came to b.py"]),
        ([("TFG602", "a.py", 3)], [], []),
    ],
)
def test_what_comes_as_loud_as_what_went_is_told(
    bench: dict[str, Any], before: list[Any], after: list[Any], told: list[str]
) -> None:
    assert list(bench["arrivals"](Counter(before), Counter(after))) == told
