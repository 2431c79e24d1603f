"""The cache: what was found before, kept in a folder of small files that anything may happen to.

An entry is found by the hash of all that it depends on, so that none is ever out of date, and a copy of the
folder is worth as much in another checkout. It is a line with the hash of the rest, and the rest is JSON: an entry
that was cut off or damaged counts as none. Entries are put in place whole, so that runs side by side do each other
no harm. Where the folder cannot be written, nothing is kept and nothing is said.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflint_gpu.errors import UserError
from tflint_gpu.lint.keys import digest, version

if TYPE_CHECKING:
    from tflint_gpu.config import Settings

#: The folder, beside the settings file that was read, or in the current folder.
FOLDER = ".tflint_gpu_cache"

#: Entries that were not used for this long are removed, and the oldest where there are more than `MOST`.
KEEP_SECONDS = 30 * 86400
MOST = 5000
#: How often entries are looked through for old ones, and marked as used.
_DAY = 86400

_TAG = "CACHEDIR.TAG"
_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n"


def cache_folder(settings: Settings, named: str | None = None) -> Path:
    """Return where the cache lies: `named` where the user says so, else beside the project's settings."""
    if named:
        return Path(named).absolute()
    return (settings.origin.parent if settings.origin else Path.cwd()) / FOLDER


class Cache:
    """Entries by kind and key, in the part of `folder` that belongs to this version of the program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own = folder / version()
        self._texts: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._writable = True
        self._wrote = False

    def get(self, kind: str, key: str) -> Any:
        """Return the entry, None where there is none that is whole."""
        path = self._path(kind, key)
        try:
            with path.open("rb") as file:
                content = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        signed, _, text = content.partition(b"\n")
        if signed.decode("ascii", "replace") != digest(text):
            return None
        if age > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)
        try:
            return json.loads(text)
        except ValueError:
            return None

    def put(self, kind: str, key: str, value: Any) -> None:
        """Keep `value`, which must be such that JSON gives it back."""
        if not self._writable:
            return
        text = json.dumps(value, separators=(",", ":")).encode()
        try:
            self._own.mkdir(parents=True, exist_ok=True)
            if not self._wrote:
                self._hide()
            _replace(self._path(kind, key), digest(text).encode() + b"\n" + text)
        except OSError:
            self._writable = False
        self._wrote = True

    def recall(self, path: str, content: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, for the file `path` whose content has the digest `content`; make it once.

        `name` says what it is. What is new is kept by `close`.
        """
        key = digest(f"{path}\0{content}".encode(errors="backslashreplace"))
        if key not in self._texts:
            known = self.get("text", key)
            self._texts[key] = known if isinstance(known, dict) else {}
        if name not in self._texts[key]:
            self._texts[key][name] = make()
            self._changed.add(key)
        return self._texts[key][name]

    def close(self) -> None:
        """Keep what `recall` made, and now and then clear away what nobody used for long."""
        for key in sorted(self._changed):
            self.put("text", key, self._texts[key])
        self._changed.clear()
        if self._wrote and self._writable:
            self._tidy()

    def _path(self, kind: str, key: str) -> Path:
        return self._own / f"{kind}-{key}.json"

    def _hide(self) -> None:
        """Keep the folder out of version control and backups."""
        for name, text in ((".gitignore", "*\n"), (_TAG, f"{_SIGNATURE}# What tflint-gpu keeps between runs.\n")):
            if not (self.folder / name).exists():
                _replace(self.folder / name, text.encode())

    def _tidy(self) -> None:
        mark = self.folder / "tidied"
        now = time.time()
        with contextlib.suppress(OSError):
            if mark.exists() and now - mark.stat().st_mtime < _DAY:
                return
            mark.touch()
            used = sorted(((path.stat().st_mtime, path) for path in self.folder.glob("*/*")), reverse=True)
            for number, (last, path) in enumerate(used):
                if number >= MOST or now - last > KEEP_SECONDS:
                    path.unlink(missing_ok=True)
            for folder in self.folder.iterdir():
                if folder.is_dir() and folder != self._own:
                    with contextlib.suppress(OSError):
                        folder.rmdir()  # only where it is empty


def _replace(path: Path, content: bytes) -> None:
    """Put a file in place whole: nobody sees half of it."""
    new = path.with_name(f"{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        new.write_bytes(content)
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def clean(folder: Path) -> bool:
    """Remove the cache in `folder`, and say whether there was one.

    Raises `UserError` where the folder holds something else, or cannot be removed.
    """
    import shutil

    if not folder.exists():
        return False
    if not _is_cache(folder):
        raise UserError(f"{folder}: not a cache of tflint-gpu; remove it by hand if you mean to")
    try:
        shutil.rmtree(folder)
    except OSError as problem:
        raise UserError(f"{folder}: cannot be removed: {problem.strerror}") from None
    return True


def _is_cache(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return (folder / _TAG).read_text(encoding="utf-8").startswith(_SIGNATURE) and all(_only_ours(folder))
    return False


def _only_ours(folder: Path) -> Iterator[bool]:
    for path in folder.iterdir():
        if path.is_dir():
            yield all(entry.name.startswith(("run-", "group-", "text-")) for entry in path.iterdir())
        else:
            yield path.name.startswith((".gitignore", _TAG, "tidied"))
