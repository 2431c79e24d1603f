"""What a run did to the files of the folder that it was started in, whoever wrote them and however."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

#: Folders whose contents are nobody's work: version control, environments, caches, and what a trace itself keeps.
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tflint-gpu", ".tflint_gpu_cache"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"}
)

#: Entries and seconds after which a tree is too large to be looked through before and after every trace.
MOST = 50_000
PATIENCE = 3.0


@dataclass(frozen=True)
class Tree:
    """The files below a folder by relative path, each with what changes when it is written; None: too large."""

    files: dict[str, tuple[int, int, int]] | None


def look(root: Path) -> Tree:
    """Look through `root`; what cannot be read is left out, and links are not followed."""
    found: dict[str, tuple[int, int, int]] = {}
    folders, end = [str(root)], time.monotonic() + PATIENCE
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.name in _LEFT_OUT:
                continue
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(about.st_mode):
                folders.append(entry.path)
            else:
                name = os.path.relpath(entry.path, root).replace(os.sep, "/")
                found[name] = (about.st_ino, about.st_size, about.st_mtime_ns)
        if len(found) > MOST or time.monotonic() > end:
            return Tree(None)
    return Tree(found)


def changed(before: Tree, after: Tree) -> tuple[str, ...]:
    """Return the files that were made, written or removed in between, in order; none where a tree is too large."""
    if before.files is None or after.files is None:
        return ()
    names = sorted(before.files.keys() | after.files.keys())
    return tuple(name for name in names if before.files.get(name) != after.files.get(name))
