"""What CONTRIBUTING says the analyser follows, each sentence held against the programs of ``followed.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tflint_gpu.cli.run import lint
from tflint_gpu.config import Settings
from tflint_gpu.findings import Finding
from tflint_gpu.source.discovery import discover

TEXT = Path(__file__).with_name("followed.md").read_text(encoding="utf-8")
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
FOLLOWED, NOT_FOLLOWED = "It follows:", "It does not follow, and is silent on:"
MISLED = "It is misled by what replaces a value behind its back, and may accuse wrongly:"

_HEAD, *_PARTS = re.split(r"^## (.*)\n", TEXT, flags=re.MULTILINE)
_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^# file: (\S+)\n", re.MULTILINE)
#: The lines that every program that trains begins with.
HEAD = _BLOCK.findall(_HEAD)[0]


def claims(heading: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each sentence below `heading` with its programs."""
    part = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))[heading]
    sections = re.split(r"^### (.*)\n", part, flags=re.MULTILINE)[1:]
    for sentence, body in zip(sections[::2], sections[1::2], strict=True):
        yield sentence, _BLOCK.findall(body)


def programs(heading: str) -> list[object]:
    return [
        pytest.param(program, id=f"{sentence[:40]}-{number}")
        for sentence, found in claims(heading)
        for number, program in enumerate(found, 1)
    ]


def files(program: str) -> dict[str, str]:
    """Return the files of `program`: what trains begins with `HEAD`, a notebook is cut at ``# cell``."""
    parts = _FILE.split(program)
    named = {"train.py": program} if len(parts) == 1 else dict(zip(parts[1::2], parts[2::2], strict=True))
    return {
        name: notebook(HEAD, *text.split("# cell\n"))
        if name.endswith(".ipynb")
        else f"{HEAD}{text}"
        if "train" in name
        else text
        for name, text in named.items()
    }


def notebook(*cells: str) -> str:
    code = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
        for cell in cells
    ]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def found(program: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Finding]:
    written = files(program)
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    patch.chdir(folder)
    # Before 2.11 TensorFlow adds no prefetch by itself. A project that states its version is left to it.
    settings = Settings(select=("missing-prefetch",), tensorflow=None if "requirements.txt" in written else "2.10")
    result = lint(discover(["."], settings), settings)
    assert not result.errors
    return list(result.findings)


@pytest.mark.parametrize("program", programs(FOLLOWED))
def test_what_is_followed_is_found(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(program, tmp_path, monkeypatch)


@pytest.mark.parametrize("program", programs(NOT_FOLLOWED))
def test_what_is_not_followed_accuses_nobody(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(program, tmp_path, monkeypatch) == []


@pytest.mark.parametrize("program", programs(MISLED))
def test_what_misleads_is_known(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(program, tmp_path, monkeypatch), "this is no longer a fault: move it up"


@pytest.mark.parametrize("heading", [FOLLOWED, NOT_FOLLOWED, MISLED])
def test_contributing_says_just_this(heading: str) -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    listed = re.search(re.escape(heading) + r"\n\n((?:\* .*\n(?:  .*\n)*)+)", text)
    assert listed is not None, f"{heading!r} and its list are not in {CONTRIBUTING.name}"
    items = [" ".join(item.split()) for item in re.split(r"^\* ", listed[1], flags=re.MULTILINE)[1:]]
    assert items == [sentence for sentence, _ in claims(heading)]
