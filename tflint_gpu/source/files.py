"""A file to check: where it lies, its bytes, and the text in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflint_gpu.source.texts import Error, ReadError, Source, decode


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to check. `path` is relative to the folder the run was started in, with forward slashes.

    `kind` is ``python`` or ``notebook``; `explicit` says that the user named this very file. `content` holds
    the bytes where they did not come from the disk (stdin, a fix being tried).
    """

    path: str
    absolute: Path
    kind: str = "python"
    explicit: bool = False
    content: bytes | None = None

    def raw(self) -> bytes:
        """Return the bytes of the file; raises `ReadError`."""
        if self.content is not None:
            return self.content
        try:
            return self.absolute.read_bytes()
        except OSError as problem:
            raise ReadError(
                Error(self.path, 1, f"cannot be read: {problem.strerror or problem}; exclude it or mend it")
            ) from None

    def digest(self) -> str:
        """Return the hash that evidence files name this file's content by: blake2b of 128 bits, in hex."""
        from hashlib import blake2b

        return blake2b(self.raw(), digest_size=16).hexdigest()

    def read(self) -> Source:
        """Return the text; raises `ReadError` for what is no text, no notebook or in an unknown encoding."""
        raw = self.raw()
        if self.kind == "notebook":
            from tflint_gpu.source.notebooks import read_notebook

            return read_notebook(self.path, raw)
        return decode(self.path, raw)
