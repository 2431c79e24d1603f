"""The cache by itself: whole entries or none, whatever happens to the folder."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tflint_gpu.config import Settings
from tflint_gpu.errors import UserError
from tflint_gpu.lint import cache as cache_module
from tflint_gpu.lint import keys
from tflint_gpu.lint.cache import FOLDER, KEEP_SECONDS, Cache, cache_folder, clean

VALUE = {"findings": [["TFG101", 1.5, None, "ü"]]}


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.json*"))


def test_what_was_put_is_there_for_the_next_run(tmp_path: Path) -> None:
    Cache(tmp_path / "c").put("run", "k", VALUE)
    assert Cache(tmp_path / "c").get("run", "k") == VALUE
    assert Cache(tmp_path / "c").get("group", "k") is None
    assert Cache(tmp_path / "c").get("run", "other") is None


def test_the_folder_keeps_itself_out_of_repositories_and_backups(tmp_path: Path) -> None:
    Cache(tmp_path / "c").put("run", "k", VALUE)
    assert (tmp_path / "c/.gitignore").read_text() == "*\n"
    assert (tmp_path / "c/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "foreign", "folder", "unsigned"])
def test_a_damaged_entry_counts_as_none(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("run", "k", VALUE)
    (path,) = entries(tmp_path / "c")
    content = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "cut": content[:-5],
                "empty": b"",
                "flipped": content.replace(b"TFG101", b"TFG102"),
                "foreign": b"\x80\x04\xff\n\xfe",
                "unsigned": content.partition(b"\n")[2],
            }[damage]
        )
    assert cache.get("run", "k") is None


def test_another_version_looks_into_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path / "c").put("run", "k", VALUE)
    monkeypatch.setattr(cache_module, "version", lambda: "0.0.9-other")
    assert Cache(tmp_path / "c").get("run", "k") is None


def test_the_version_is_that_of_the_program_and_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tflint_gpu"
    for name in ("tflint_gpu/lint/keys.py", "rules/graph/x.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(keys, "__file__", str(package / "lint/keys.py"))
    seen = [keys.version()]
    for change in (
        lambda: (package / "lint/keys.py").write_text("two"),
        lambda: (tmp_path / "rules/graph/x.md").write_text("two"),
        lambda: (package / "new.py").write_text(""),
        lambda: (package / "new.py").rename(package / "newer.py"),
    ):
        change()
        seen.append(keys.version())
    assert len(set(seen)) == len(seen)
    (package / "__pycache__").mkdir()
    (package / "__pycache__/x.pyc").write_text("")
    assert keys.version() == seen[-1]


def test_a_folder_that_cannot_be_written_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file/c")
    cache.put("run", "k", VALUE)
    assert cache.recall("a.py", "digest", "name", lambda: [1]) == [1]
    cache.close()
    assert cache.get("run", "k") is None


def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "c")
    cache.put("run", "first", VALUE)

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    cache.put("run", "second", VALUE)
    assert [path.name for path in entries(tmp_path / "c")] == ["run-first.json"]


def test_readers_beside_writers_see_whole_entries(tmp_path: Path) -> None:
    values = [{"n": number, "text": "x" * 5000} for number in range(4)]
    Cache(tmp_path / "c").put("run", "k", values[0])
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        cache = Cache(tmp_path / "c")
        while not over.is_set():
            if (seen := cache.get("run", "k")) not in values:
                wrong.append(seen)

    def write(value: object) -> None:
        cache = Cache(tmp_path / "c")
        for _ in range(50):
            cache.put("run", "k", value)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(value,)) for value in values]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    reader.join()
    assert wrong == []
    assert len(entries(tmp_path / "c")) == 1


def test_what_takes_time_is_made_once_for_each_text(tmp_path: Path) -> None:
    made: list[str] = []

    def recall(content: str, name: str) -> object:
        cache = Cache(tmp_path / "c")
        value = cache.recall("a.py", content, name, lambda: made.append(name) or [content, name])
        cache.close()
        return value

    assert recall("one", "statement 3") == recall("one", "statement 3") == ["one", "statement 3"]
    assert recall("two", "statement 3") == ["two", "statement 3"]
    assert recall("one", "statement 4") == ["one", "statement 4"]
    assert made == ["statement 3", "statement 3", "statement 4"]


def test_what_nobody_used_for_long_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    monkeypatch.setattr(cache_module, "version", lambda: "older")
    Cache(folder).put("run", "k", VALUE)
    monkeypatch.setattr(cache_module, "version", lambda: "newer")
    cache = Cache(folder)
    for key in ("fresh", "old", "used"):
        cache.put("run", key, VALUE)
    long_ago = time.time() - KEEP_SECONDS - 60
    for path in entries(folder):
        if "fresh" not in path.name:
            os.utime(path, (long_ago, long_ago))
    assert cache.get("run", "used") == VALUE
    cache.close()
    assert [path.relative_to(folder).as_posix() for path in entries(folder)] == [
        "newer/run-fresh.json",
        "newer/run-used.json",
    ]
    assert not (folder / "older").exists()


def test_there_are_never_more_entries_than_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MOST", 3)
    cache = Cache(tmp_path / "c")
    for number in range(6):
        cache.put("run", str(number), VALUE)
    cache.close()
    assert len(entries(tmp_path / "c")) == 3


def test_it_lies_beside_the_settings_or_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cache_folder(Settings()) == tmp_path / FOLDER
    assert cache_folder(Settings(origin=tmp_path / "top/pyproject.toml")) == tmp_path / "top" / FOLDER
    assert cache_folder(Settings(), "else/where") == tmp_path / "else/where"


def test_clean_removes_a_cache_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    Cache(folder).put("run", "k", VALUE)
    assert clean(folder)
    assert not folder.exists()
    assert not clean(folder)
    for name, text in {"notes.txt": "mine", "CACHEDIR.TAG": (cache_module._SIGNATURE)}.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        with pytest.raises(UserError, match="not a cache of tflint-gpu"):
            clean(folder)
    assert (folder / "notes.txt").read_text() == "mine"
