"""Notebooks: cells joined, magics masked line by line, places told by cell."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from tflint_gpu.findings import Location
from tflint_gpu.source import Error, ReadError
from tflint_gpu.source.magics import mask, read_cell
from tflint_gpu.source.notebooks import read_notebook


def notebook(*cells: str | tuple[str, str], **metadata: Any) -> bytes:
    parts = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps(
        {
            "nbformat": 4,
            "metadata": metadata,
            "cells": [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in parts],
        }
    ).encode()


def test_places_are_told_by_cell_counting_all_cells() -> None:
    source = read_notebook("n.ipynb", notebook("import a", ("markdown", "# Title"), "b\nc(1)\n"))
    call = source.parse().body[-1]
    assert source.place(call) == Location("n.ipynb", 2, 1, 2, 5, cell=3)
    assert source.line(2, cell=3) == "c(1)"
    assert source.joined(2, 3) == call.lineno


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        pytest.param("%matplotlib inline", "pass", id="line magic"),
        pytest.param("    !pip install x", "    pass", id="shell, indented"),
        pytest.param("tf.data?", "pass", id="help"),
        pytest.param("??fit", "pass", id="help before"),
        pytest.param("pip install tensorflow", "pass", id="automagic"),
        pytest.param("files = !ls *.png", "files = get_ipython()", id="shell output assigned"),
        pytest.param("a, b = %lookup x", "a, b = get_ipython()", id="magic output assigned"),
        pytest.param("%time model.fit(ds)", "0;    model.fit(ds)", id="timed statement keeps its columns"),
        pytest.param("%timeit -n 10 f(x)", "0;            f(x)", id="options of the timer"),
        pytest.param("x = %time f(y)", "x =       f(y)", id="timed value assigned"),
    ],
)
def test_masks_in_place(line: str, masked: str) -> None:
    assert mask(line) == masked
    ast.parse(masked.strip())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = (a\n     % b)", id="modulo on its own line"),
        pytest.param("s = '''\n%matplotlib\n!ls\n'''", id="inside a string"),
        pytest.param("y = a \\\n  % b", id="behind a backslash"),
        pytest.param("# really?", id="a question in a comment"),
        pytest.param("x = 'why?'", id="a question in a string"),
        pytest.param("x != y", id="not equal"),
    ],
)
def test_leaves_python_alone(text: str) -> None:
    assert mask(text) == text
    # The same beside a line that does need masking, where the shortcut "it parses" does not help.
    assert mask(f"!ls\n{text}") == f"pass\n{text}"


def test_a_shell_line_may_go_on_behind_backslashes() -> None:
    assert mask("!pip install \\\n  a \\\n  b\nx = 1") == "pass\n\n\nx = 1"


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        pytest.param("%%time\nmodel.fit(ds)", "python", "\nmodel.fit(ds)", id="timed cell"),
        pytest.param("\n%%capture out\n!ls\nx", "python", "\n\npass\nx", id="blank lines above"),
        pytest.param("%%bash\npip install x", "foreign", "", id="shell"),
        pytest.param("%%html\n<b>", "foreign", "", id="html"),
        pytest.param("%%some_extension\nx = 1", "foreign", "", id="unknown: might be anything"),
        pytest.param("%%writefile notes.txt\nhello", "foreign", "", id="a file that is no Python"),
        pytest.param("%%writefile -a lib/data.py\nimport x", "file", "\nimport x", id="a Python file"),
    ],
)
def test_cell_magics(text: str, kind: str, code: str) -> None:
    cell = read_cell(text)
    assert (cell.kind, cell.text) == (kind, code)
    assert kind == "foreign" or cell.text.count("\n") == text.count("\n")


def test_writefile_cells_are_modules_of_their_own() -> None:
    source = read_notebook(
        "lab/n.ipynb", notebook("import data", "%%writefile data.py\nx = 1\n", "%%writefile -a data.py\ny = f(2)")
    )
    (written,) = source.written
    assert written.name == "lab/data.py"
    assert written.path == "lab/n.ipynb"
    assert written.place(written.parse().body[1]) == Location("lab/n.ipynb", 2, 1, 2, 9, cell=3)
    assert "x = 1" not in source.text


def test_a_cell_that_is_not_python_is_left_out_and_told() -> None:
    errors: list[Error] = []
    source = read_notebook("n.ipynb", notebook("x = 1", "Here I explain\nthings", "y = 2"))
    tree = source.parse(errors)
    assert [statement.targets[0].id for statement in tree.body] == ["x", "y"]
    assert source.locate(tree.body[1].lineno) == (3, 1)
    assert [(error.cell, error.line, error.fatal) for error in errors] == [(2, 1, False)]


def test_a_notebook_in_another_language_has_no_code() -> None:
    assert read_notebook("n.ipynb", notebook("x <- 1", kernelspec={"language": "R"})).text == ""
    assert read_notebook("n.ipynb", notebook("x = 1", language_info={"name": "python"})).text == "x = 1"


def test_format_three_keeps_cells_in_worksheets() -> None:
    raw = json.dumps({"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1"}]}]})
    assert read_notebook("n.ipynb", raw.encode()).text == "x = 1"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b"{", "not a notebook", id="torn JSON"),
        pytest.param(b"[]", "no JSON object", id="no object"),
        pytest.param(b"{}", "no cells", id="no cells"),
        pytest.param(b"\xff", "UTF-8", id="not text"),
        pytest.param(b"[" * 100_000, "nested|notebook", id="deep"),
    ],
)
def test_what_is_no_notebook_is_told_in_one_sentence(raw: bytes, words: str) -> None:
    with pytest.raises(ReadError, match=words) as caught:
        read_notebook("n.ipynb", raw)
    assert "\n" not in caught.value.error.message


def test_an_empty_notebook_is_read() -> None:
    source = read_notebook("n.ipynb", notebook())
    assert source.parse().body == []
    assert source.locate(1) == (1, 1)
