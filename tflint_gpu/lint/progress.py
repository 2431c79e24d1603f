"""A line on the terminal that says how far a long run is; it is gone when the run is."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from tflint_gpu.program.views import Program

#: Seconds before anything is shown, and between two looks.
PATIENCE = 1.0
_PAUSE = 0.2
_ERASE = "\r\x1b[K"


class Progress:
    """Shows on `stream` how many files were read, from a thread of its own, once the run has taken a second."""

    def __init__(self, stream: TextIO, patience: float = PATIENCE) -> None:
        self._stream = stream
        self._patience = patience
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._current: Program | None = None
        self._done = 0
        self.total = 0

    def __enter__(self) -> Progress:
        self._since = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def begun(self, program: Program) -> None:
        """Take note of the program that is being read."""
        self._current = program

    def ended(self, files: int) -> None:
        """Take note that a group of so many `files` is done with."""
        self._current = None
        self._done += files

    def line(self) -> str:
        """Return what is shown."""
        current = self._current
        read = self._done + (sum(module.executed for module in current.modules) if current else 0)
        seconds = time.monotonic() - self._since
        return f"checking: {read:,} of {self.total:,} files read, {seconds:.0f} s"

    def _show(self) -> None:
        pause = self._patience
        while not self._over.wait(pause):
            pause = _PAUSE
            self._stream.write(f"{_ERASE}{self.line()}")
            self._stream.flush()
        if pause != self._patience:
            self._stream.write(_ERASE)
            self._stream.flush()
