"""Writing what fixes changed: every file whole or not at all, and none where one of them cannot be."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.errors import UserError

if TYPE_CHECKING:
    from tflint_gpu.fixes.apply import Changed, FixReport


def write_changes(report: FixReport, root: Path) -> None:
    """Write the changed files below `root`, each at once or not at all, keeping mode, owner and links.

    Nothing is written where one of them cannot be, or is not any more what was linted: `UserError` says which.
    """
    targets = [((root / change.path).resolve(), change) for change in report.changed]
    for target, change in targets:
        with _sentence(change.path):
            _check(target, change)
    for target, change in targets:
        with _sentence(change.path):
            _write(target, change.after)


@contextmanager
def _sentence(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise UserError(f"{path}: cannot be written: {problem.strerror}; the file is as it was") from None


def _check(target: Path, change: Changed) -> None:
    if target.read_bytes() != change.before:
        raise UserError(f"{change.path}: changed while it was being fixed; run again")
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(13, "its folder is read-only")


def _write(target: Path, content: bytes) -> None:
    kept = target.stat()
    if kept.st_nlink > 1:
        _overwrite(target, content)
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        _give(draft, kept.st_uid, kept.st_gid)
        draft.chmod(kept.st_mode & 0o7777)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _overwrite(target: Path, content: bytes) -> None:
    """Write into the file itself, whose other names (hard links) would keep the old text if it were replaced."""
    before = target.read_bytes()
    try:
        target.write_bytes(content)
    except BaseException:
        target.write_bytes(before)
        raise


def _give(draft: Path, owner: int, group: int) -> None:
    """Leave the file to whom the old one belonged, as far as that is allowed: root's editor does the same."""
    made = draft.stat()
    if (made.st_uid, made.st_gid) != (owner, group):
        with suppress(OSError):
            os.chown(draft, owner, group)
