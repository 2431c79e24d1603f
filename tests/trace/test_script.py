from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tflint_gpu.errors import UserError
from tflint_gpu.trace.script import find_module, find_script, package_root


def test_a_script_runs_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    script = find_script("jobs/train.py")
    assert (script.mode, script.name, script.folder) == ("script", "jobs/train.py", tmp_path)
    assert set(script.roots) == {tmp_path, tmp_path / "jobs"}


def test_a_notebook_runs_in_its_own_folder_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "text"},
        {"cell_type": "code", "metadata": {}, "source": "!pip install x\nx = 1", "outputs": []},
        {"cell_type": "code", "metadata": {}, "source": "y = 2", "outputs": []},
    ]
    (tmp_path / "books").mkdir()
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    (tmp_path / "books" / "n.ipynb").write_text(json.dumps(notebook))
    monkeypatch.chdir(tmp_path)
    script = find_script("books/n.ipynb")
    assert (script.mode, script.folder) == ("notebook", tmp_path / "books")
    assert [cell.number for cell in script.cells] == [2, 3]
    first, second = (cell.source for cell in script.cells)
    assert first.splitlines()[1] == "x = 1"
    assert "pip" not in first.splitlines()[0] or first.startswith(("#", "pass"))
    assert second == "y = 2\n"


def test_a_pipe_is_no_script(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    with pytest.raises(UserError, match="a pipe, socket or device"):
        find_script(str(tmp_path / "train.py"))


def test_modules_are_found_as_python_m_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "findme_jobs"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("print('main')\n")
    (package / "train.py").write_text("print('train')\n")
    monkeypatch.chdir(tmp_path)
    script = find_module("findme_jobs.train")
    assert (script.mode, script.module, script.path) == ("module", "findme_jobs.train", package / "train.py")
    assert script.roots == (tmp_path, tmp_path)
    assert find_module("findme_jobs").path == package / "__main__.py"
    with pytest.raises(UserError, match="no such module"):
        find_module("findme_jobs.absent")


def test_package_root_is_above_the_outermost_package(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for folder in (tmp_path / "a", inner):
        (folder / "__init__.py").write_text("")
    assert package_root(inner) == tmp_path
    assert package_root(tmp_path) == tmp_path
