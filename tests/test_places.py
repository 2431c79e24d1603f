"""An obstacle is told exactly where writing fails, and asking leaves no trace."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tflint_gpu.places import obstacle


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("new.json", None),
        ("there.json", None),
        ("made/on/the/way.json", None),
        ("dangling.json", None),
        ("/dev/null", None),
        ("folder", errno.EISDIR),
        ("there.json/x.json", errno.ENOTDIR),
        ("loop.json", errno.ELOOP),
        ("loop.json/x.json", errno.ELOOP),
        ("x" * 300, errno.ENAMETOOLONG),
    ],
)
def test_what_the_system_would_say(tmp_path: Path, name: str, code: int | None) -> None:
    (tmp_path / "there.json").write_text("text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "dangling.json").symlink_to("target.json")
    before = sorted(tmp_path.iterdir())
    why = obstacle(tmp_path / name)
    assert why == (os.strerror(code) if code else None)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.json").read_text() == "text"
    if code:
        with pytest.raises(OSError, match=f"Errno {code}"):
            (tmp_path / name).write_text("")


@pytest.mark.parametrize("name", ["new.json", "sub/new.json", "there.json"])
def test_what_is_not_ours_to_write(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there.json").write_text("")
    # Root may write everywhere: the question is who asks, so the answer is given here.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert obstacle(tmp_path / name) == os.strerror(errno.EACCES)
