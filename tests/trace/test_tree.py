"""Files that a run made, wrote or removed, whoever did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflint_gpu.trace import tree
from tflint_gpu.trace.tree import Tree, changed, look


def test_what_was_made_written_and_removed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("same.txt", "written.txt", "deep/removed.txt", "replaced.txt"):
        (tmp_path / name).write_text("before")
    before = look(tmp_path)
    (tmp_path / "written.txt").write_text("longer than before")
    (tmp_path / "deep" / "removed.txt").unlink()
    (tmp_path / "deep" / "made.txt").write_text("new")
    (tmp_path / "draft").write_text("before")
    (tmp_path / "draft").replace(tmp_path / "replaced.txt")
    assert changed(before, look(tmp_path)) == (
        "deep/made.txt",
        "deep/removed.txt",
        "replaced.txt",
        "written.txt",
    )


def test_nothing_happened(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    before = look(tmp_path)
    assert (tmp_path / "a.txt").read_text() == "a"
    assert changed(before, look(tmp_path)) == ()


def test_what_belongs_to_tools_and_what_lies_behind_links_is_left_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    project = tmp_path / "project"
    for folder in (outside, project / ".git", project / ".tflint-gpu", project / "__pycache__"):
        folder.mkdir(parents=True)
    (project / "link").symlink_to(outside)
    before = look(project)
    for folder in (outside, project / ".git", project / ".tflint-gpu", project / "__pycache__"):
        (folder / "new").write_text("x")
    assert changed(before, look(project)) == ()


def test_a_tree_that_is_too_large_accuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST", 2)
    for number in range(4):
        (tmp_path / str(number)).write_text("x")
    assert look(tmp_path) == Tree(None)
    assert changed(look(tmp_path), Tree({"new": (1, 1, 1)})) == ()


def test_folders_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    assert look(tmp_path / "nowhere") == Tree({})
