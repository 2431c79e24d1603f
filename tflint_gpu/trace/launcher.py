"""Starts the user's interpreter on one job and never leaves anything of it behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import Samples
from tflint_gpu.trace.sampler import Sampler

PROBE = Path(__file__).parent / "probe" / "start.py"

#: Seconds that the child gets beyond its own deadline to write its report.
GRACE = 12.0

#: Trackers run without a server and without files, no window opens and no compiled module is left behind; nothing
#: else of the environment changes.
QUIET = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
    "WANDB_MODE": "disabled",
    "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
    "NEPTUNE_MODE": "debug",
}

_ASK = """
import importlib.util, json, sys
print(json.dumps([list(sys.version_info[:2]), importlib.util.find_spec("tensorflow") is not None]))
"""


class Terminated(KeyboardInterrupt):
    """The linter itself was asked to end (SIGTERM, SIGHUP); the child ends first."""


@dataclass(frozen=True)
class Outcome:
    """What came back from one child: its report, where there is one, its last output, its exit status.

    `dump` is Python's own dump of the stacks, where nothing but that could be had. `arms` are the changes that
    the child tried itself: ``{change: {"means", "times", "problem"}}`` with the baseline under "". `samples` are
    those of the window, where there was one.
    """

    report: dict[str, Any] | None
    tail: tuple[str, ...]
    status: int
    dump: str
    arms: dict[str, dict[str, Any]] | None = None
    samples: Samples | None = None


def find_python(name: str) -> str:
    """Return the interpreter `name` as a path; raises `UserError` where there is none or it cannot trace."""
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name}: no such interpreter; give --python the path of the one that has your TensorFlow")
    try:
        asked = subprocess.run([found, "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        version, tensorflow = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UserError(f"{name}: does not run as a Python interpreter; check --python") from None
    if version < [3, 8]:
        raise UserError(f"{name} is Python {version[0]}.{version[1]}; a trace needs 3.8 or later")
    if not tensorflow:
        raise UserError(
            f"{name} has no TensorFlow: install it there, or name with --python the interpreter that has it"
        )
    return found


def launch(
    job: dict[str, Any],
    python: str,
    folder: Path,
    work: Path,
    *,
    deadline: float,
    show_output: bool = False,
    told_of: Callable[[dict[str, Any]], None] | None = None,
) -> Outcome:
    """Run one job in a child process in `folder`, with its files in `work`, and return what came of it.

    `told_of` is told about twice a second what the child tries: ``{"change", "run", "left"}`` (seconds).
    The child has a session of its own; all of it is killed at the end, whatever happens here.
    """
    work.mkdir(parents=True, exist_ok=True)
    report, dump = work / "report.json", work / "stacks.txt"
    arms = work / "arms.json"
    doing = work / "doing.json"
    files = {"report": report, "dump": dump, "arms_report": arms, "doing": doing, "profile": work / "profile"}
    job = {**job, **{name: str(path) for name, path in files.items()}, "deadline": deadline}
    (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
    environment = {**os.environ, **QUIET, "MLFLOW_TRACKING_URI": (work / "mlflow").as_uri()}
    if "seed" in job:
        environment["PYTHONHASHSEED"] = str(job["seed"])
    tail: deque[str] = deque(maxlen=200)
    own: list[int] = []
    with terminable(), Sampler(own=lambda: own) as sampler:
        child = subprocess.Popen(
            [python, str(PROBE), str(work / "job.json")],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        own.append(child.pid)
        assert child.stdout is not None
        reader = threading.Thread(target=_drain, args=(child.stdout, tail, show_output), daemon=True)
        reader.start()
        try:
            _wait(child, deadline + GRACE + job.get("budget", 0.0), doing, told_of)
        finally:
            _kill(child)
            reader.join(5)
    told = _read(report)
    window = (told or {}).get("window_at")
    samples = sampler.samples(*window) if window else None
    return Outcome(told, tuple(tail), child.returncode, _text(dump), _read(arms), samples)


def _wait(
    child: subprocess.Popen[bytes],
    seconds: float,
    doing: Path,
    told_of: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Wait until the child has ended, for at most `seconds`, and tell all the time what it says that it tries."""
    end, last, since = time.monotonic() + seconds, None, 0.0
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(left if told_of is None else min(left, 0.5))
            return
        now = _read(doing)
        if told_of is not None and now is not None:
            if now != last:
                last, since = now, time.monotonic()
            told_of({**now, "left": now["left"] - (time.monotonic() - since)})


#: Requests to end that Python itself does not turn into an exception.
_ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, so that a child and temporary files are cleared away too."""

    def ended(_signal: int, _frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in _ENDINGS}
    for one, handler in before.items():
        # Who ignores the end of the terminal (nohup) wants the trace to go on.
        if handler is not signal.SIG_IGN:
            signal.signal(one, ended)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and every process it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(10)


def _drain(stream: IO[bytes], tail: deque[str], show: bool) -> None:
    for raw in stream:
        line = raw.decode("utf-8", "replace")
        tail.append(line.rstrip("\n"))
        if show:
            sys.stderr.write(line)
            sys.stderr.flush()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
