"""Writing fixed files: whole or not at all, and nothing of them but the text is another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fixes.conftest import Project
from tests.fixes.test_apply import FIXED, TEXT
from tflint_gpu.errors import UserError
from tflint_gpu.fixes import FixReport, write_changes


def written(folder: Path) -> FixReport:
    project = Project({"a.py": TEXT})
    report = project.fix()
    write_changes(report, folder)
    return report


def test_writing_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    path.chmod(0o755)
    written(tmp_path)
    assert path.read_text() == FIXED
    assert path.stat().st_mode & 0o7777 == 0o755
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_writing_keeps_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real" / "b.py"
    real.parent.mkdir()
    real.write_text(TEXT)
    (tmp_path / "a.py").symlink_to(real)
    written(tmp_path)
    assert (tmp_path / "a.py").is_symlink()
    assert real.read_text() == FIXED


def test_writing_keeps_all_names_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / "b.py").hardlink_to(tmp_path / "a.py")
    written(tmp_path)
    assert (tmp_path / "b.py").read_text() == FIXED
    assert (tmp_path / "a.py").samefile(tmp_path / "b.py")


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT + "# mine\n")
    with pytest.raises(UserError, match=r"a\.py: changed while it was being fixed; run again"):
        written(tmp_path)
    assert (tmp_path / "a.py").read_text() == TEXT + "# mine\n"


def test_a_folder_that_cannot_be_written_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(TEXT)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match=r"a\.py: cannot be written: No space left on device"):
        written(tmp_path)
    assert (tmp_path / "a.py").read_text() == TEXT
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_one_file_that_cannot_be_written_keeps_all_as_they_were(tmp_path: Path) -> None:
    report = Project({"a.py": TEXT, "b.py": TEXT}).fix()
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / "b.py").write_text(TEXT + "# mine\n")
    with pytest.raises(UserError, match=r"b\.py: changed while"):
        write_changes(report, tmp_path)
    assert (tmp_path / "a.py").read_text() == TEXT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_stays_its_owners(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    os.chown(tmp_path / "a.py", 65534, 65534)
    written(tmp_path)
    assert (tmp_path / "a.py").read_text() == FIXED
    assert ((tmp_path / "a.py").stat().st_uid, (tmp_path / "a.py").stat().st_gid) == (65534, 65534)


@pytest.mark.parametrize(
    ("closed", "reason"), [("a.py", "it is read-only"), (".", "its folder is read-only")], ids=["file", "folder"]
)
def test_what_may_not_be_written_stays(
    closed: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    denied = (tmp_path / closed).resolve()
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != denied)
    with pytest.raises(UserError, match=f"^a.py: cannot be written: {reason}; the file is as it was$"):
        written(tmp_path)
    assert (tmp_path / "a.py").read_text() == TEXT
