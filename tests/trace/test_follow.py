"""Lines of edited files: found again where their text still stands, and nowhere else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from tflint_gpu.findings import Location
from tflint_gpu.trace.evidence import (
    SCHEMA,
    Eager,
    Environment,
    Evidence,
    KerasCall,
    PipelineStage,
    Spot,
    TracedFunction,
    Window,
)
from tflint_gpu.trace.follow import NO_CODE, compare, follow, remember

TEXT = """import tensorflow as tf

# the input
ds = tf.data.Dataset.range(8)
ds = ds.map(
    slow,
)
ds = ds.batch(2)
model.fit(ds)
"""


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def edit(old: str, new: str, path: str = "train.py"):
    def cells(text: str) -> dict[int | None, str]:
        return {None: remember(path, text.encode())[path]}

    return compare(cells(old), cells(new))


def traced(text: str = TEXT, path: str = "train.py", cell: int | None = None) -> Evidence:
    """Evidence that names lines 5 (a map), 8 (a batch) and 9 (the loop) of one file."""
    key = path if cell is None else f"{path}#{cell}"
    spots = [Spot(path, line, cell) for line in (5, 8, 9)]
    return Evidence(
        SCHEMA,
        "0",
        "now",
        (path,),
        Environment(),
        Window("fit", 1, 5, 1.0, 0.0, spots[2]),
        sources={path: digest(text), "data.py": "0"},
        lines=remember(path, text.encode()),
        executed={key: (1, 4, 5, 8, 9), "data.py": (1,)},
        pipelines=(PipelineStage("a::Map", "Map", 1.0, 1, spots[0]),),
        functions=(TracedFunction("f", 1, 0, 1, spot=spots[1], caller=spots[2]),),
        keras_calls=(KerasCall("fit", 1, 1.0, spots[2]), KerasCall("fit", 1, 1.0, Spot("data.py", 9))),
        eager=Eager(1.0, 0.5, ((spots[0], 3.0), (spots[2], 1.0))),
    )


def followed(text: str, evidence: Evidence | None = None):
    return follow(evidence or traced(), {"train.py": text.encode()}.get)


def test_files_that_are_as_they_were_are_left_alone() -> None:
    evidence = traced()
    assert followed(TEXT, evidence).evidence is evidence
    assert followed(TEXT, evidence).edits == {}


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("# licence\n#\n\n" + TEXT, 3),
        (TEXT.replace("\n# the input\n", "\n"), -1),
        (TEXT.replace("ds = ds.map(", "# slow\n\nds = ds.map("), 2),
        (TEXT.replace("\n", "\r\n"), 0),
        (TEXT.replace("ds = ds.map(", "ds = ds.map(   "), 0),
    ],
    ids=["above", "a comment less", "between", "line ends", "blanks at the end"],
)
def test_lines_that_only_moved_take_their_figures_along(text: str, by: int) -> None:
    found = followed(text)
    (stage,) = found.evidence.pipelines
    assert stage.spot == Spot("train.py", 5 + by)
    assert found.evidence.window is not None
    assert found.evidence.window.spot == Spot("train.py", 9 + by)
    assert found.evidence.keras_calls[1].spot == Spot("data.py", 9)
    assert {5 + by, 8 + by, 9 + by} <= set(found.evidence.executed["train.py"])
    assert found.evidence.executed["data.py"] == (1,)
    assert found.edits["train.py"].only_moved
    assert found.edits["train.py"].stands(Location("train.py", 5 + by, 1, 7 + by))


def test_what_changed_has_no_place_and_the_rest_keeps_its_own() -> None:
    found = followed(TEXT.replace("ds.batch(2)", "ds.batch(4)"))
    whole = found.edits["train.py"]
    assert not whole.only_moved
    assert whole.stands(Location("train.py", 5, 1, 7))
    assert not whole.stands(Location("train.py", 8))
    (function,) = found.evidence.functions
    assert function.spot is None
    assert function.caller == Spot("train.py", 9)
    assert 8 not in found.evidence.executed["train.py"]


def test_a_lost_line_leaves_no_empty_pair() -> None:
    found = followed(TEXT.replace("ds = ds.map(\n    slow,\n)\n", ""))
    assert found.evidence.eager is not None
    assert found.evidence.eager.spots == ((Spot("train.py", 6), 1.0),)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("    slow,", "    slow,\n    num_parallel_calls=4,"),
        TEXT.replace("    slow,\n", ""),
        TEXT.replace("    slow,", "    fast,"),
    ],
    ids=["a line more", "a line less", "a line changed"],
)
def test_a_statement_that_changed_inside_does_not_stand(text: str) -> None:
    line = text[: text.index("ds.map")].count("\n") + 1
    end = text[: text.index("ds = ds.batch")].count("\n")
    assert not followed(text).edits["train.py"].stands(Location("train.py", line, 1, end))


def test_indentation_is_code() -> None:
    assert not edit("if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n").only_moved


def test_equal_lines_keep_their_order() -> None:
    text = "ds = ds.batch(2)\nx = 1\nds = ds.batch(2)\n"
    whole = edit(text, "y = 2\n" + text)
    assert [whole.target((None, line)) for line in (1, 2, 3)] == [(None, 2), (None, 3), (None, 4)]


def test_lines_that_changed_places_do_not_make_one_statement() -> None:
    whole = edit("f(\n    a,\n    b,\n)\n", "f(\n    b,\n    a,\n)\n")
    assert not whole.stands(Location("train.py", 1, 1, 4))
    assert not whole.only_moved


def test_a_place_without_code_stands_nowhere() -> None:
    assert not edit("a = 1\n", "a = 1\n\n# nothing\n").stands(Location("train.py", 3))


def notebook(*cells: str) -> str:
    listed = [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# text\n"]}, *listed]})


def test_cells_of_a_notebook_may_move() -> None:
    path = "n.ipynb"
    old = notebook("import a\n", TEXT)
    evidence = traced(old, path, cell=3)
    new = notebook("%pip list\n", "import a\n", "# new\n" + TEXT)
    found = follow(evidence, {path: new.encode()}.get)
    (stage,) = found.evidence.pipelines
    assert stage.spot == Spot(path, 6, 4)
    assert found.evidence.executed == {"n.ipynb#3": (), "n.ipynb#4": (2, 5, 6, 9, 10), "data.py": (1,)}
    assert found.edits[path].stands(Location(path, 6, 1, 8, 2, 4))


def test_old_evidence_and_missing_files_stay_as_they_are() -> None:
    old = replace(traced(), lines={})
    assert followed("x = 1\n" + TEXT, old).evidence is old
    gone = traced()
    assert follow(gone, lambda _path: None).evidence is gone


def test_damaged_files_are_remembered_by_nothing() -> None:
    assert remember("n.ipynb", b"{") == {}
    assert remember("n.ipynb", b'{"cells": [{"cell_type": "code"}]}') == {}
    assert remember("a.py", b"# coding: nonsense\nx = 1\n")["a.py"].startswith(NO_CODE)


def test_no_source_code_is_remembered() -> None:
    (told,) = remember("train.py", TEXT.encode()).values()
    assert len(told) == 8 * (TEXT.count("\n") + 1)
    assert int(told, 16)
