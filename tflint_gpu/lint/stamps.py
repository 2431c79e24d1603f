"""What changes in a cache's key where a plug-in comes, goes or is edited: a digest of each one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from tflint_gpu import PLUGINS


def stamps(metadata: Iterable[str]) -> list[str]:
    """Return what changes where a plug-in comes, goes or changes: a digest for each one of them.

    `metadata` are the metadata folders of everything installed. Of each no more than one file is read, as long as
    it is no plug-in: `importlib.metadata` takes much longer.
    """
    found = []
    for folder in metadata:
        try:
            with open(f"{folder}/entry_points.txt", "rb") as file:  # noqa: PTH123 - a Path takes as long as the rest
                text = file.read()
        except OSError:
            continue
        if PLUGINS.encode() in text:
            found.append(f"{folder.rpartition('/')[2]} {_digest(text)}")
    return found


def _digest(entry_points: bytes) -> str:
    """Return a hash of a plug-in's entry points and of the modules and pages beside the rules they name."""
    import importlib.util

    hashed = blake2b(entry_points, digest_size=16)
    for module in re.findall(r"=\s*([\w.]+)", entry_points.decode("utf-8", "replace")):
        try:
            spec = importlib.util.find_spec(module)
        except Exception:  # its package may raise whatever it likes; who loads the rule tells
            continue
        folder = Path(spec.origin).parent if spec and spec.origin else None
        for file in sorted(folder.iterdir()) if folder else ():
            if file.suffix in (".py", ".md"):
                hashed.update(f"{file.name}\0".encode() + file.read_bytes())
    return hashed.hexdigest()
