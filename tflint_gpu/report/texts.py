"""The text behind a finding: read when a report needs it, and never fatal where it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

_LINE_END = re.compile(r"\r\n|\r|\n")


class Memory(Protocol):
    """What keeps things from run to run that took time to work out of a text."""

    def recall(self, path: str, content: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` once returned for the file `path`, its digest `content` and `name`."""


class Texts:
    """Lines and digests of source files, by the path that findings name.

    `root` is the folder those paths are relative to; `given` holds the bytes of files that are not on the disk as
    they were linted, such as standard input. `memory` is what `remembered` asks first.
    """

    def __init__(
        self,
        root: Path | None = None,
        given: Mapping[str, bytes] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.root = root or Path()
        self._memory = memory
        self._digests: dict[str, str] = {}
        self._given = dict(given or {})
        self._lines: dict[tuple[str, int | None], tuple[str, ...]] = {}

    def raw(self, path: str) -> bytes | None:
        """Return the file's bytes, None where it cannot be read."""
        if path in self._given:
            return self._given[path]
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return None

    def digest(self, path: str) -> str | None:
        """Return the blake2b-128 of the file in hex, as evidence states it; None where it cannot be read."""
        import hashlib

        raw = self.raw(path)
        return None if raw is None else hashlib.blake2b(raw, digest_size=16).hexdigest()

    def remembered(self, path: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` returns: plain data that depends on `name` and the text of `path` alone."""
        if self._memory is None:
            return make()
        if path not in self._digests:
            self._digests[path] = self.digest(path) or ""
        return self._memory.recall(path, self._digests[path], name, make)

    def lines(self, path: str, cell: int | None = None) -> tuple[str, ...]:
        """Return the lines of a file, or of one cell of a notebook; empty where there is nothing to read."""
        key = (path, cell)
        if key not in self._lines:
            raw = self.raw(path)
            text = "" if raw is None else _decode(raw) if cell is None else _cell(raw, cell)
            self._lines[key] = tuple(_LINE_END.split(text)) if text else ()
        return self._lines[key]


def _decode(raw: bytes) -> str:
    import io
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding, errors="replace")
    except (SyntaxError, LookupError):
        return raw.decode("utf-8", errors="replace")


def _cell(raw: bytes, number: int) -> str:
    import json

    try:
        source = json.loads(raw)["cells"][number - 1]["source"]
    except (ValueError, LookupError, TypeError):
        return ""
    return source if isinstance(source, str) else "".join(source)
