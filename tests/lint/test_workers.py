"""How many processes pay, and that none outlives the one that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tflint_gpu.lint import workers

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("lines", "jobs"),
    [
        ([], 1),
        ([29_999], 1),
        ([10_000, 10_000], 1),
        ([300_000], 1),
        ([300_000, 14_000], 1),
        ([300_000, 20_000], 2),
        ([20_000, 20_000], 2),
        ([20_000] * 5, 4),
        ([100] * 1000, 4),
    ],
)
def test_a_process_must_have_enough_to_do(monkeypatch: pytest.MonkeyPatch, lines: list[int], jobs: int) -> None:
    monkeypatch.setattr(workers, "_cores", lambda: 4)
    assert workers.useful_jobs(lines) == jobs


#: Starts two processes, says which, and sleeps.
STARTER = """\
import multiprocessing, time
from tflint_gpu.config import Settings
from tflint_gpu.lint.workers import _started

with _started(2, ((), Settings()), None):
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_first(how: signal.Signals) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert first.stdout
    started = [int(word) for word in first.stdout.readline().split()]
    assert len(started) == 2
    first.send_signal(how)
    first.wait(timeout=30)
    first.stdout.close()
    deadline = time.monotonic() + 30
    while any(map(_alive, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(process: int) -> bool:
    """Say whether a process runs; one that only waits to be fetched by its parent does not."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return not state.exists() or state.read_text().rpartition(") ")[2][0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
