"""Suppressions: which lines a comment covers, what it names, and what is told of those that did nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tflint_gpu.config import closeness
from tflint_gpu.findings import Finding, Location, Severity
from tflint_gpu.source import Error, SourceFile
from tflint_gpu.source.suppressions import Suppressions, read_suppressions
from tflint_gpu.source.texts import decode


def finding(
    line: int, *, code: str = "TFG101", name: str = "missing-prefetch", cell: int | None = None
) -> Finding:
    where = Location("a.ipynb" if cell else "a.py", line, cell=cell)
    return Finding(code, name, "input-pipeline", Severity.WARNING, "…", where)


def suppressions(text: str) -> Suppressions:
    return Suppressions([SourceFile("a.py", Path("a.py"), content=text.encode())], closeness)


STATEMENT = """\
ds = (
    tf.data.Dataset.range(3)
    .map(f){comment}
    .batch(2)
)
other = 1
"""


@pytest.mark.parametrize(
    "comment",
    [
        "  # tflint-gpu: ignore[missing-prefetch]",
        "  # tflint-gpu: ignore[TFG101]",
        "  # tflint-gpu: ignore[tfg101, tiny-batch] as measured",
        "  # tflint-gpu: ignore[input-pipeline]",
        "  # tflint-gpu: ignore",
        "  # noqa: TFG101",
        "  # noqa: E501, TFG101",
        "  # why not  # tflint-gpu: ignore[all]",
    ],
)
def test_a_comment_covers_the_whole_statement_it_stands_on(comment: str) -> None:
    silencer = suppressions(STATEMENT.format(comment=comment))
    assert all(silencer.silences(finding(line)) for line in range(1, 6))
    assert not silencer.silences(finding(6))


@pytest.mark.parametrize(
    "comment",
    [
        pytest.param("  # tflint-gpu: ignore[TFG102]", id="another rule"),
        pytest.param("  # noqa", id="a bare noqa is meant for other linters"),
        pytest.param("  # noqa: E501", id="another linter's code"),
        pytest.param("  # type: ignore[missing-prefetch]", id="another tool"),
    ],
)
def test_a_comment_that_names_something_else_silences_nothing(comment: str) -> None:
    assert not suppressions(STATEMENT.format(comment=comment)).silences(finding(3))


def test_text_in_a_string_is_no_comment() -> None:
    assert not suppressions('x = "# tflint-gpu: ignore"\n').silences(finding(1))


def test_a_comment_alone_on_its_line_covers_the_next_statement() -> None:
    silencer = suppressions("# tflint-gpu: ignore[TFG101]\n\nx = f(\n 1)\ny = 2\n")
    assert silencer.silences(finding(4))
    assert not silencer.silences(finding(5))


def test_decorators_and_header_are_one_statement_and_the_body_is_not() -> None:
    silencer = suppressions("@tf.function  # tflint-gpu: ignore\n@other\ndef f(\n    a,\n):\n    return a @ b\n")
    assert [silencer.silences(finding(line)) for line in (1, 3, 5, 6)] == [True, True, True, False]


def test_ranges_open_and_close_by_rule() -> None:
    silencer = suppressions(
        "# tflint-gpu: disable[TFG101, tiny-batch]\na\n# tflint-gpu: enable[TFG101]\nb\n# tflint-gpu: enable\nc\n"
    )
    tiny = {"code": "TFG201", "name": "tiny-batch"}
    assert [silencer.silences(finding(line)) for line in (2, 4, 6)] == [True, False, False]
    assert [silencer.silences(finding(line, **tiny)) for line in (2, 4, 6)] == [True, True, False]


def test_a_file_may_be_silenced_whole() -> None:
    silencer = suppressions("x = 1\ny = 2\n# tflint-gpu: ignore-file[TFG101]\n")
    assert silencer.silences(finding(1))
    assert not silencer.silences(finding(1, code="TFG201", name="tiny-batch"))


def test_unused_references_are_told_one_by_one() -> None:
    silencer = suppressions("x = 1  # tflint-gpu: ignore[TFG101, TFG102]\ny = 2  # tflint-gpu: ignore\n")
    assert silencer.silences(finding(1))
    assert [(suppression.line, rule) for suppression, rule in silencer.unused()] == [(1, "TFG102"), (2, "")]


def test_a_misspelt_directive_is_told() -> None:
    silencer = suppressions("x = 1\ny = 2  # tflint-gpu: ignroe[TFG101]\n")
    assert isinstance(silencer.malformed[0], Error)
    assert silencer.malformed[0].line == 2
    assert "ignroe" in silencer.malformed[0].message


def test_in_a_notebook_the_cell_tells_lines_apart() -> None:
    cells = [
        {"cell_type": "code", "source": "x = 1  # tflint-gpu: ignore\n"},
        {"cell_type": "code", "source": "y"},
    ]
    content = json.dumps({"cells": cells}).encode()
    silencer = Suppressions([SourceFile("a.ipynb", Path("a.ipynb"), "notebook", content=content)], closeness)
    assert silencer.silences(finding(1, cell=1))
    assert not silencer.silences(finding(1, cell=2))


def test_a_file_that_python_cannot_tokenise_keeps_what_came_before() -> None:
    silencer = suppressions("x = 1  # tflint-gpu: ignore\ny = (\n")
    assert silencer.silences(finding(1))


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# tflint-gpu: ignore[missing-prefetch", "not closed"),
        ("# tflint-gpu: ignore[", "not closed"),
        ("# tflint-gpu: ignore[]", "empty"),
        ("# tflint-gpu: ignore[ , ]", "empty"),
        ("# tflint-gpu: disable[]", "empty"),
        ("# tflint-gpu: ignore(TFG101)", "square brackets"),
        ("# tflint-gpu: ignore TFG101", "square brackets"),
        ("# tflint-gpu: ignore: TFG101", "square brackets"),
        ("# tflint_gpu: ignore[TFG101]", "'tflint_gpu:'"),
        ("# tflintgpu: ignore[TFG101]", "'tflintgpu:'"),
        ("# tflint-gpu ignore[TFG101]", "'tflint-gpu'"),
        ("# TFLINT-GPU: ignore[TFG101]", "'TFLINT-GPU:'"),
        ("# tflint-gpu:", "unknown directive"),
    ],
)
def test_a_malformed_comment_is_told_and_silences_nothing(comment: str, words: str) -> None:
    malformed: list[Error] = []
    found = list(read_suppressions(decode("train.py", f"x = 1  {comment}\n".encode()), malformed))
    assert found == []
    (error,) = malformed
    assert words in error.message
    assert (error.line, error.fatal) == (1, False)


@pytest.mark.parametrize(
    "comment",
    [
        "# tflint-gpu is a linter",
        "# see tflint-gpu: ignore",
        "# tflint_gpu/checks/check.py",
        "# tflint-gpu: ignore[TFG101] the list (of rules) is closed",
        "# tflint-gpu: ignore  the data is tiny",
    ],
)
def test_prose_is_no_malformed_comment(comment: str) -> None:
    malformed: list[Error] = []
    list(read_suppressions(decode("train.py", f"x = 1  {comment}\n".encode()), malformed))
    assert malformed == []
