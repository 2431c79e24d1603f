"""The profile beside the evidence never takes the place of anything that is the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflint_gpu.errors import UserError
from tflint_gpu.trace.kept import kept, profile_beside, refuse_others


def recorded(folder: Path, text: str) -> None:
    (folder / "plugins" / "profile" / "run").mkdir(parents=True)
    (folder / "plugins" / "profile" / "run" / "h.xplane.pb").write_text(text)


def texts(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.rglob("*.xplane.pb")]


def test_a_profile_replaces_the_one_before(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with kept(tmp_path / "made" / "profile") as draft:
            recorded(draft, text)
        assert texts(tmp_path / "made") == [text]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["profile"]


def test_what_fails_leaves_the_one_before(tmp_path: Path) -> None:
    with kept(tmp_path / "profile") as draft:
        recorded(draft, "first")
    with pytest.raises(KeyboardInterrupt), kept(tmp_path / "profile") as draft:
        recorded(draft, "second")
        raise KeyboardInterrupt
    assert texts(tmp_path) == ["first"]
    assert [path.name for path in tmp_path.iterdir()] == ["profile"]


def test_nothing_recorded_changes_nothing(tmp_path: Path) -> None:
    with kept(tmp_path / "profile") as draft:
        recorded(draft, "first")
    with kept(tmp_path / "profile"):
        pass
    assert texts(tmp_path) == ["first"]


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_what_is_no_profile_is_never_replaced(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "profile"
    if kind == "folder":
        place.mkdir()
        (place / "users.csv").write_text("ann,bob")
    elif kind == "file":
        place.write_text("about me")
    else:
        place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="in the place of the profile"), kept(place):
        raise AssertionError("nothing may be made")
    with pytest.raises(UserError, match="--evidence-out"):
        refuse_others(place)
    assert place.is_symlink() or place.exists()


def test_evidence_elsewhere_has_its_profile_under_its_own_name() -> None:
    assert profile_beside(Path(".tflint-gpu/evidence.json")) == Path(".tflint-gpu/profile")
    assert profile_beside(Path("evidence.json")) == Path("evidence.profile")
    assert profile_beside(Path("runs/gpu.json")) == Path("runs/gpu.profile")
