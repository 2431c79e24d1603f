"""What keeps a file from being written, told before the work whose result it is to hold."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def obstacle(file: Path) -> str | None:
    """Return why nothing can be written at `file`, in the system's words; None where nothing is known against it.

    Folders that are missing count as if they were made. Makes and changes nothing.
    """
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        folder = next(level for level in file.resolve().parents if level.exists())
        return None if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as problem:
        return problem.strerror or str(problem)
    if stat.S_ISDIR(mode):
        return os.strerror(errno.EISDIR)
    return None if os.access(file, os.W_OK) else os.strerror(errno.EACCES)
