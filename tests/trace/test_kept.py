"""Neither the evidence nor the profile beside it ever takes the place of anything that is the user's."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from tflint_gpu.errors import UserError
from tflint_gpu.trace.kept import kept, profile_beside, put, refuse_others, refuse_strangers


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


EVIDENCE = b'{\n "schema": 1,\n "tool": "tflint-gpu 0.1.0"\n}\n'


@pytest.mark.parametrize("before", [None, b"", EVIDENCE, EVIDENCE[:-2], b'{"schema":0,"tool":"0.0.9"}'])
def test_evidence_replaces_evidence_torn_or_old(tmp_path: Path, before: bytes | None) -> None:
    file = tmp_path / "made" / "evidence.json"
    if before is not None:
        file.parent.mkdir()
        file.write_bytes(before)
    put(file, EVIDENCE)
    assert file.read_bytes() == EVIDENCE
    assert [path.name for path in file.parent.iterdir()] == ["evidence.json"]


@pytest.mark.parametrize(
    "text", [b"import tensorflow as tf\n", b"\x0a\x10\x00plane", b'{"other": 1}', b'dev = ["tflint-gpu"]']
)
def test_evidence_never_replaces_what_is_the_users(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(text)
    for refused in (lambda: refuse_strangers(file), lambda: put(file, EVIDENCE)):
        with pytest.raises(UserError, match=r"train.py: there already, and not evidence; .*--evidence-out"):
            refused()
    assert file.read_bytes() == text


def test_evidence_never_replaces_a_pipe_or_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(UserError, match="not evidence"):
            put(tmp_path / name, EVIDENCE)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(UserError, match="null: there already, and not evidence"):
        refuse_strangers(Path(os.devnull))


def test_evidence_follows_a_link_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "shared.json")
    for text in (EVIDENCE, EVIDENCE + b"\n"):
        put(tmp_path / "link.json", text)
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "shared.json").read_bytes() == text
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(UserError, match="cannot write the evidence"):
        put(tmp_path / "loop.json", EVIDENCE)


def test_evidence_in_the_place_of_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write the evidence"):
        put(tmp_path / "file" / "evidence.json", EVIDENCE)


def _draft(folder: Path, drafts: multiprocessing.Queue[str]) -> None:
    with kept(folder) as draft:
        drafts.put(str(draft))


def test_two_runs_at_once_make_their_profiles_apart(tmp_path: Path) -> None:
    drafts: multiprocessing.Queue[str] = multiprocessing.Queue()
    other = multiprocessing.Process(target=_draft, args=(tmp_path / "profile", drafts))
    with kept(tmp_path / "profile") as draft:
        other.start()
        assert Path(drafts.get(timeout=60)) != draft
        other.join()
