"""Live workers: two real ones of one job, and everything at the other end of a port that is none."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.trace.conftest import SCRIPTS
from tflint_gpu.errors import UserError
from tflint_gpu.trace.attach import AttachJob, attach, parse_workers
from tflint_gpu.trace.evidence import load, straggler

ROOT = Path(__file__).parents[2]
SINGLE = """import tensorflow as tf

tf.profiler.experimental.server.start({port})
model = tf.keras.Sequential([tf.keras.Input([32]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = tf.zeros([640, 32]), tf.zeros([640, 1])
model.fit(x, y, verbose=0)
print("training", flush=True)
model.fit(x, y, epochs=1000000, verbose=0)
"""


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(folder: Path) -> list[subprocess.Popen[str]]:
    """Start two workers that train together for a minute; their services listen at the ports ``args[-2]``."""
    shutil.copy(SCRIPTS / "two_workers.py", folder)
    ports = free_ports(4)
    cluster = ",".join(f"localhost:{port}" for port in ports[:2])
    started = [
        subprocess.Popen(
            [sys.executable, "two_workers.py", str(rank), cluster, str(port), "60"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=(folder / f"errors{rank}").open("wb"),
            text=True,
        )
        for rank, port in enumerate(ports[2:])
    ]
    for rank, worker in enumerate(started):
        assert worker.stdout is not None
        assert worker.stdout.readline() == "training\n", (folder / f"errors{rank}").read_text()[-2000:]
    return started


@contextmanager
def job(folder: Path) -> Iterator[tuple[list[str], list[subprocess.Popen[str]]]]:
    """Run the two workers; gives the addresses of their services, and the processes."""
    started = start(folder)
    try:
        yield [f"localhost:{worker.args[-2]}" for worker in started], started  # type: ignore[index]
    finally:
        for worker in started:
            worker.kill()
            worker.wait()


def recorded(folder: Path, *options: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Attach to a job of two workers from `folder`; return their addresses and the finished command.

    TensorFlow 2.21's own service now and then ends a worker with a memory fault while it stops recording (one
    recording in eight or so, on CPUs): such a job is started again.
    """
    for attempt in range(4):
        below = folder / f"job{attempt}"
        below.mkdir()
        with job(below) as (workers, processes):
            line = [sys.executable, "-m", "tflint_gpu", "attach", ",".join(workers), *options]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(line, cwd=below, env=environment, capture_output=True, text=True, timeout=120)
            if all(process.poll() is None for process in processes):
                return workers, done
            assert done.returncode in (0, 1, 2)
            assert "ended while it was recorded" in done.stdout + done.stderr
    pytest.skip("TensorFlow's profiler service ended a worker four times")


@pytest.mark.trace
def test_two_workers_are_recorded_joined_and_judged(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    workers, done = recorded(tmp_path, "--duration", "3", "--output-format", "json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    trace = told["trace"]
    fast, slow = trace["hosts"]
    assert [fast["name"], slow["name"]] == workers
    assert fast["step_ms"] == pytest.approx(slow["step_ms"], rel=0.1)
    assert min(fast["steps"], slow["steps"]) >= 3
    # The second worker's generator sleeps 2 ms a row: 16 rows of its own and 16 that it throws away.
    assert slow["input_ms"] > 0.6 * slow["step_ms"]
    assert fast["collective_ms"] > 0.6 * fast["step_ms"]
    assert slow["shards"] == 2
    assert slow["thrown_away_ms"] > 0.3 * slow["step_ms"]
    assert trace["slowest_host"]["name"] == workers[1]
    assert trace["slowest_host"]["wait_share"] > 0.5
    assert f"{workers[1]} is the slowest of 2 hosts" in trace["headline"]
    found = {finding["name"]: finding for finding in told["findings"]}
    assert {"replica-imbalance", "autoshard-mismatch", "input-bound-step"} <= set(found)
    assert "it waits for its input" in found["replica-imbalance"]["message"]
    kept = max(tmp_path.glob("job*/.tflint-gpu/evidence.json"))
    late = straggler(load(kept).hosts)
    assert late is not None
    assert late.name == workers[1]
    profiles = sorted(path.name for path in kept.parent.rglob("*.xplane.pb"))
    assert profiles == sorted(f"{worker.replace(':', '_')}.xplane.pb" for worker in workers)
    assert list(kept.parent.glob(".*.part")) == []


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a single worker that trains by itself."""
    pytest.importorskip("tensorflow")
    folder = tmp_path_factory.mktemp("single")
    (port,) = free_ports(1)
    (folder / "train.py").write_text(SINGLE.format(port=port))
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "train.py"], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n", (folder / "errors").read_text()[-2000:]
        yield f"localhost:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def web_server() -> Iterator[str]:
    """Something that accepts connections and is no profiler service."""
    server = HTTPServer(("localhost", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"localhost:{server.server_port}"
    finally:
        server.shutdown()


@pytest.mark.trace
def test_a_worker_without_the_service_is_left_out_and_named(worker: str, tmp_path: Path) -> None:
    with web_server() as other:
        imported = attach(AttachJob((worker, other), tmp_path, sys.executable, 1.0))
        assert imported.evidence.notes[0].startswith(f"{other} is not in these figures: no profiler service")
        # Keras 3 marks no steps: each call of its training function is one.
        assert len(imported.evidence.steps) > 10
        assert imported.evidence.hosts == ()
        with pytest.raises(UserError, match=f"{other}: no profiler service answers there"):
            attach(AttachJob((other,), tmp_path, sys.executable, 1.0))


@pytest.mark.trace
def test_a_worker_that_hangs_is_given_up(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    silent = socket.socket()
    silent.bind(("localhost", 0))
    silent.listen()
    name = f"localhost:{silent.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(UserError, match=f"{name}: no profile within 10 s"):
        attach(AttachJob((name,), tmp_path, sys.executable, 1.0, 10.0))
    assert time.monotonic() - began < 40
    silent.close()


def test_nothing_listens(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with pytest.raises(UserError, match=rf"localhost:{port}: nothing listens there .*server\.start\({port}\)"):
        attach(AttachJob((f"localhost:{port}",), tmp_path, sys.executable))


def test_no_such_host(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such host"):
        attach(AttachJob(("no-such-host.invalid:6009",), tmp_path, sys.executable))


def test_an_interpreter_without_tensorflow(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with web_server() as other, pytest.raises(UserError, match="has no TensorFlow"):
        attach(AttachJob((other,), tmp_path, str(bare / "bin" / "python")))


def test_workers_are_named_by_host_and_port() -> None:
    assert parse_workers(["a:1,grpc://b.example:6009", "[::1]:7", "a:1"]) == ("a:1", "b.example:6009", "[::1]:7")
    for wrong in ("", "a", "a:b", "a:0", "a:70000", "a:1,,b:2", "http://a:1", "a b:1"):
        with pytest.raises(UserError, match="is not HOST:PORT"):
            parse_workers([wrong])
