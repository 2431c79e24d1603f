"""Texts behind findings: read as they were linted, and never fatal."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tflint_gpu.report import Texts


def test_lines_end_as_python_ends_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"a\r\nb\rc\n\x0cd\n")
    assert Texts(tmp_path).lines("a.py") == ("a", "b", "c", "\x0cd", "")


def test_a_declared_encoding_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("# coding: latin-1\né".encode("latin-1"))
    assert Texts(tmp_path).lines("a.py")[1] == "é"


@pytest.mark.parametrize("raw", [b"# coding: nonsense\nx", b"\xff\xfe\nx"], ids=["unknown encoding", "no UTF-8"])
def test_what_cannot_be_decoded_is_shown_as_far_as_it_goes(raw: bytes) -> None:
    assert Texts(given={"a.py": raw}).lines("a.py")[1] == "x"


def test_given_bytes_win_over_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("disk")
    texts = Texts(tmp_path, {"a.py": b"given"})
    assert texts.lines("a.py") == ("given",)
    assert texts.digest("a.py") == hashlib.blake2b(b"given", digest_size=16).hexdigest()


def test_a_cell_by_its_number() -> None:
    cells = [{"source": ["a\n", "b"]}, {"source": "c\nd"}]
    texts = Texts(given={"a.ipynb": json.dumps({"cells": cells}).encode()})
    assert texts.lines("a.ipynb", 1) == ("a", "b")
    assert texts.lines("a.ipynb", 2) == ("c", "d")
    assert texts.lines("a.ipynb", 3) == ()


@pytest.mark.parametrize("path", ["gone.py", "", "."])
def test_what_cannot_be_read_is_empty(path: str, tmp_path: Path) -> None:
    texts = Texts(tmp_path)
    assert texts.lines(path) == ()
    assert texts.digest(path) is None
