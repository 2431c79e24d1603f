"""Reading a Python file: decoded as Python would, places in characters, one sentence for what cannot be read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tflint_gpu.findings import Location
from tflint_gpu.source import Error, ReadError, SourceFile
from tflint_gpu.source.texts import decode


def why(raw: bytes) -> Error:
    with pytest.raises(ReadError) as caught:
        decode("a.py", raw).parse()
    return caught.value.error


@pytest.mark.parametrize(
    ("raw", "encoding", "newline", "bom"),
    [
        pytest.param(b"x = 1\n", "utf-8", "\n", False, id="plain"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", "utf-8", "\n", True, id="byte order mark"),
        pytest.param(b"x = 1\r\ny = 2\r\n", "utf-8", "\r\n", False, id="windows line ends"),
        pytest.param(b"x = 1\ry = 2\r", "utf-8", "\r", False, id="old macintosh line ends"),
        pytest.param(b"x = 1\r\ny = 2\nz = 3\nw = 4\n", "utf-8", "\n", False, id="mixed: the most frequent wins"),
        pytest.param("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "iso-8859-1", "\n", False, id="latin-1"),
        pytest.param(
            "#!python\n# -*- coding: cp1252 -*-\nx = '€'\n".encode("cp1252"), "cp1252", "\n", False, id="in line 2"
        ),
    ],
)
def test_decodes_as_python_does(raw: bytes, encoding: str, newline: str, bom: bool) -> None:
    source = decode("a.py", raw)
    assert (source.encoding, source.newline, source.bom) == (encoding, newline, bom)
    assert "\r" not in source.text
    assert ast.dump(source.parse()) == ast.dump(ast.parse(raw))


def test_a_coding_comment_below_line_two_declares_nothing() -> None:
    assert decode("a.py", b"x = 1\ny = 2\n# coding: nonsense\n").encoding == "utf-8"


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        pytest.param(b"x = 1\ny = (\n", 2, "never closed", id="unclosed bracket"),
        pytest.param(b"x = 1\nprint 'a'\n", 2, "not Python 3", id="python 2"),
        pytest.param(b"x = '\xff'\n", 1, "not valid utf-8", id="not utf-8"),
        pytest.param(b"\n\nx = '\xe9'\n", 3, "not valid utf-8", id="line of the bad byte"),
        pytest.param(b"# coding: klingon\n", 1, "does not know", id="unknown encoding"),
        pytest.param(b"\x7fELF\x02\x01\0\0", 1, "binary", id="binary"),
        pytest.param("x = 1".encode("utf-16"), 1, "UTF-16", id="utf-16"),
        pytest.param(b"(" * 5000 + b")" * 5000, 1, "", id="nested beyond the parser"),
    ],
)
def test_says_in_one_sentence_what_cannot_be_read(raw: bytes, line: int, words: str) -> None:
    error = why(raw)
    assert error.line == line
    assert words in error.message
    assert "\n" not in error.message
    assert error.fatal


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.py", tmp_path):
        with pytest.raises(ReadError, match="cannot be read"):
            SourceFile("x.py", path).read()


def test_parsing_prints_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    decode("a.py", b"x = '\\d'\nx is 1\n").parse()
    assert not recwarn.list


def test_columns_count_characters_where_ast_counts_bytes() -> None:
    source = decode("a.py", "größe = f(x)\ny = g('日本', h)\n".encode())
    first, second = (statement.value for statement in source.parse().body)
    assert source.place(first) == Location("a.py", 1, 9, 1, 13)
    assert source.place(second.args[1]) == Location("a.py", 2, 13, 2, 14)


def test_line_gives_the_text_and_nothing_past_the_end() -> None:
    source = decode("a.py", b"x\r\ny\r\n")
    assert [source.line(number) for number in (1, 2, 3, 9)] == ["x", "y", "", ""]


def test_content_in_memory_stands_for_the_file(tmp_path: Path) -> None:
    file = SourceFile("a.py", tmp_path / "a.py", content=b"x = 1\n")
    assert file.read().text == "x = 1\n"
    assert len(file.digest()) == 32
