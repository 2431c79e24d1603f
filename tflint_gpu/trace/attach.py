"""Records profiles of workers that are training right now, through TensorFlow's own profiler service."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflint_gpu.errors import UserError
from tflint_gpu.trace.importer import Imported, import_profile
from tflint_gpu.trace.launcher import find_python, terminable

CAPTURE = Path(__file__).parent / "probe" / "capture.py"

#: Seconds in which a worker must accept a connection.
CONNECT = 5.0

#: Seconds in which the interpreter must have loaded TensorFlow.
LOADING = 120.0

_WORKER = re.compile(r"(?:grpc://)?(?P<host>\[[0-9a-fA-F:]+\]|[^\s:/\[\],]+):(?P<port>\d{1,5})")

#: How TensorFlow's client logs what a worker answered instead of a profile.
_REFUSED = re.compile(r"\] (?P<worker>\S+) returned (?P<code>[A-Z_]+): (?P<text>.*)")

_TIMEOUT = "timeout"

#: What is behind an answer that no profiler service gives.
_NO_SERVICE = (
    "no profiler service answers there; start it in the worker with "
    "tf.profiler.experimental.server.start(PORT), and name that port"
)


@dataclass(frozen=True)
class AttachJob:
    """Whom to record and for how long; times in seconds.

    The workers write into `folder` (absolute), which they and this machine must share. `timeout` is what a worker
    may take beyond `duration` to answer.
    """

    workers: tuple[str, ...]
    folder: Path
    python: str
    duration: float = 2.0
    timeout: float = 30.0


def parse_workers(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the workers named as ``host:port``, separated by commas; raises `UserError` for anything else."""
    found = []
    for text in ",".join(texts).split(","):
        named = _WORKER.fullmatch(text.strip())
        if named is None or not 0 < int(named["port"]) < 65536:
            raise UserError(f"{text.strip()!r} is not HOST:PORT; name workers as worker0:6009,worker1:6009")
        found.append(f"{named['host']}:{named['port']}")
    return tuple(dict.fromkeys(found))


def attach(job: AttachJob) -> Imported:
    """Record all workers of `job` at once and return the evidence of what they did.

    A worker that gives no profile is told in the evidence's notes. Raises `UserError` where a worker cannot be
    reached, where none gives a profile, and where the interpreter has no TensorFlow.
    """
    for worker in job.workers:
        _reach(worker)
    python = find_python(job.python)
    before = set(_runs(job.folder))
    answers = _record(job, python)
    fresh = [run for run in _runs(job.folder) if run not in before]
    if not fresh:
        raise UserError(_nothing(job, answers))
    run = max(fresh)
    missing = [worker for worker in job.workers if not (run / f"{worker.replace(':', '_')}.xplane.pb").is_file()]
    imported = import_profile(run)
    told = tuple(f"{worker} is not in these figures: {_why(job, answers, worker)}." for worker in missing)
    evidence = imported.evidence
    short = (_too_short(job),) if evidence.window is None or evidence.window.seen_as == "time" else ()
    order = {worker: number for number, worker in enumerate(job.workers)}
    hosts = tuple(sorted(evidence.hosts, key=lambda host: order.get(host.name, len(order))))
    return replace(
        imported,
        evidence=replace(
            evidence,
            hosts=hosts,
            command=("attach", ",".join(job.workers)),
            notes=(*told, *short, *evidence.notes),
        ),
    )


def _too_short(job: AttachJob) -> str:
    return f"No steps could be told apart in {job.duration:g} s: record longer with --duration."


def _reach(worker: str) -> None:
    """Raise `UserError` where nothing accepts connections at `worker`."""
    host, _, port = worker.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT).close()
    except socket.gaierror:
        raise UserError(f"{worker}: no such host; check the name") from None
    except OSError as problem:
        reason = "no answer" if isinstance(problem, TimeoutError) else problem.strerror or str(problem)
        raise UserError(
            f"{worker}: nothing listens there ({reason}); start the service in the worker with "
            f"tf.profiler.experimental.server.start({port}), and attach while it trains"
        ) from None


def _listens(worker: str) -> bool:
    try:
        _reach(worker)
    except UserError:
        return False
    return True


def _runs(folder: Path) -> Iterator[Path]:
    """Yield the recorded runs below the log folder `folder`."""
    return (run for run in folder.glob("plugins/profile/*") if any(run.glob("*.xplane.pb")))


def _record(job: AttachJob, python: str) -> dict[str, str]:
    """Have the workers write their profiles; return, by worker, what those said that wrote none.

    The key ``""`` holds the end of the client's own output where it failed, or how long it was waited for.
    """
    with terminable(), tempfile.TemporaryDirectory(prefix="tflint-gpu-") as work:
        told, begun, path = (Path(work) / name for name in ("told.txt", "begun", "job.json"))
        asked = {
            "workers": job.workers,
            "folder": str(job.folder),
            "duration_ms": round(job.duration * 1000),
            "begun": str(begun),
        }
        path.write_text(json.dumps(asked), encoding="utf-8")
        with told.open("wb") as output:
            child = subprocess.Popen(
                [python, str(CAPTURE), str(path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
            try:
                _wait(child, LOADING, until=begun)
                _wait(child, job.duration + job.timeout)
            finally:
                ended = child.poll()
                _kill(child)
        text = told.read_text(encoding="utf-8", errors="replace")
    answers = {match["worker"]: f"{match['code']}: {match['text']}" for match in _REFUSED.finditer(text)}
    if ended is None:
        answers[""] = _TIMEOUT
    elif ended != 0:
        answers[""] = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return answers


def _wait(child: subprocess.Popen[bytes], seconds: float, until: Path | None = None) -> None:
    """Wait for the end of `child`, at most so long, or until the file `until` is there."""
    end = time.monotonic() + seconds
    while child.poll() is None and time.monotonic() < end and not (until and until.exists()):
        time.sleep(0.1)


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _nothing(job: AttachJob, answers: dict[str, str]) -> str:
    """Say why there is no profile at all, for the first worker that gave a reason."""
    worker = next((name for name in job.workers if name in answers), None)
    failed = answers.get("", "")
    if worker is None and failed not in ("", _TIMEOUT):
        return f"{', '.join(job.workers)}: TensorFlow could not record them ({failed}); it must be 2.3 or later"
    return f"{worker or ', '.join(job.workers)}: {_why(job, answers, worker or '')}"


def _late(job: AttachJob) -> str:
    return f"no profile within {job.timeout:g} s after the recording; the worker hangs, or give it --timeout"


def _why(job: AttachJob, answers: dict[str, str], worker: str) -> str:
    """Say why a worker gave no profile, by its answer or by how the recording ended."""
    said = answers.get(worker)
    if said == _TIMEOUT or (said is None and answers.get("") == _TIMEOUT):
        return _late(job)
    if said is None:
        return (
            "it wrote no profile that can be seen here; give --logdir a folder that this machine and the worker "
            f"share (now {job.folder})"
        )
    code, _, text = said.partition(": ")
    if "Another profiler" in text or code in ("ALREADY_EXISTS", "FAILED_PRECONDITION"):
        return "another profiler is at work in it; attach again once that has ended"
    if code in ("UNIMPLEMENTED", "UNAVAILABLE", "INTERNAL", "UNKNOWN"):
        return _NO_SERVICE if _listens(worker) else "it ended while it was recorded; see its own output"
    return _late(job) if code == "DEADLINE_EXCEEDED" else f"it answered {said}"
