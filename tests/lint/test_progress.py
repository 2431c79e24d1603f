"""The line on the terminal: late, true, and gone at the end."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

from tflint_gpu.lint.progress import Progress


def test_a_short_run_shows_nothing() -> None:
    stream = io.StringIO()
    with Progress(stream, patience=60):
        pass
    assert stream.getvalue() == ""


def test_a_long_run_says_how_far_it_is_and_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    with Progress(stream, patience=0.01) as progress:
        progress.total = 1234
        progress.ended(1000)
        progress.begun(SimpleNamespace(modules=[SimpleNamespace(executed=done) for done in (True, True, False)]))  # type: ignore[arg-type]
        for _ in range(500):
            if "1,002" in stream.getvalue():
                break
            time.sleep(0.01)
    told = stream.getvalue()
    assert "checking: 1,002 of 1,234 files read, 0 s" in told
    assert told.startswith("\r\x1b[K")
    assert told.endswith("\r\x1b[K")
