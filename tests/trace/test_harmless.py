"""A trace leaves the user's tree as it was, and nothing of itself behind, however it ends."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.trace.conftest import SCRIPTS
from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import SCHEMA, Environment, Evidence, load, save

ROOT = Path(__file__).parents[2]
PARTS = """import tensorflow as tf


def build():
    return tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
"""
ENDLESS = """import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), epochs=1000000, verbose=0)
"""


def tree(folder: Path) -> dict[str, str]:
    """Return a digest of every file and folder below `folder`, but for the evidence's own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(".tflint-gpu"):
            found[name] = blake2b(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def command(folder: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line of a trace and its environment, with its temporary files in a folder of its own."""
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    return [sys.executable, "-m", "tflint_gpu", "trace", *arguments], environment


@pytest.mark.trace
def test_programs_that_save_all_they_can_change_nothing(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(SCRIPTS / "saves_everything.py", project / "train.py")
    (project / "parts.py").write_text(PARTS)
    (project / "best.keras").write_text("the model of last week")
    (project / "training.csv").write_text("epoch,loss\n0,0.5\n")
    before = tree(project)
    line, environment = command(project, "--what-if", "none", "--output-format", "json", "train.py")
    done = subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode in (0, 1), done.stderr
    after = tree(project)
    # Written by other means than TensorFlow's and Keras' savers, which nobody can hold back: they are told.
    by_hand = ("array.npy", "by_hand.csv", "rows.h5", "rows.tfrecord", "state.pickle", "written.txt")
    for name in by_hand:
        assert after.pop(name), name
    assert after == before
    evidence = load(project / ".tflint-gpu" / "evidence.json")
    assert evidence.window is not None
    assert evidence.window.seen_as == "fit"
    (note,) = (note for note in evidence.notes if "not held back" in note)
    assert sum(name in note for name in by_hand) == 5
    assert note.endswith("and 1 more.")
    assert {
        "ModelCheckpoint",
        "BackupAndRestore",
        "CSVLogger",
        "TensorBoard",
        "Model.save",
        "Model.save_weights",
        "Model.export",
        "tf.saved_model.save",
        "tf.train.CheckpointManager.save",
        "tf.train.Checkpoint.write",
        "tf.summary.create_file_writer",
        "Dataset.cache to a file",
    } <= set(evidence.muted)
    assert list((tmp_path / "temporary").glob("tflint-gpu-*")) == []


def running(folder: Path) -> list[str]:
    """Return the commands of all processes that have to do with `folder`."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


def settled(what: Callable[[], bool], seconds: float = 15.0) -> bool:
    """Say whether `what` becomes true within some seconds."""
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.1)
    return what()


@pytest.mark.trace
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_at_any_moment_it_leaves_no_process_and_no_half_evidence(
    tmp_path: Path, how: signal.Signals
) -> None:
    pytest.importorskip("tensorflow")
    chance = random.Random(int(how))
    # During the start, during the import of TensorFlow, and while it trains.
    for number, moment in enumerate((0.8, chance.uniform(1, 4), chance.uniform(5, 12))):
        project = tmp_path / f"project{number}"
        project.mkdir()
        (project / "train.py").write_text(ENDLESS)
        line, environment = command(project, "--what-if", "all", "train.py")
        child = subprocess.Popen(
            line, cwd=project, env=environment, stderr=subprocess.PIPE, start_new_session=True
        )
        time.sleep(moment)
        child.send_signal(how)
        _, told = child.communicate(timeout=60)
        assert child.returncode != 0
        assert settled(lambda: not running(tmp_path)), running(tmp_path)
        assert b"Traceback" not in told
        evidence = project / ".tflint-gpu" / "evidence.json"
        if evidence.exists():
            json.loads(evidence.read_text())
        if how is not signal.SIGKILL:
            assert list(project.glob(".tflint-gpu/.*.part")) == []
            assert list((tmp_path / "temporary").glob("tflint-gpu-*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on files stands for a full disk")
@pytest.mark.parametrize("kib", [1, 4])
def test_a_disk_that_fills_up_during_the_run_is_one_sentence(tmp_path: Path, kib: int) -> None:
    pytest.importorskip("tensorflow")
    project = tmp_path / "project"
    project.mkdir()
    # No file may be larger than this; the report of a run that shows no step is, and so is its job with 1 KiB.
    (project / "train.py").write_text(f"words = {['word'] * 600}\nprint('done')\n" + "a = 1\n" * 2000)
    line, environment = command(project, "--what-if", "none", "train.py")
    limited = ["bash", "-c", f'ulimit -f {kib} && exec "$@"', "bash", *line]
    done = subprocess.run(limited, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    told = [line for line in done.stderr.splitlines() if not line.startswith("trace: ")]
    assert len(told) == 1, told
    assert "File too large" in told[0]
    assert settled(lambda: not running(tmp_path)), running(tmp_path)
    assert {path.name for path in project.rglob("*")} <= {".tflint-gpu", "train.py", ".gitignore"}
    assert list((tmp_path / "temporary").glob("tflint-gpu-*")) == []


def test_evidence_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    evidence = Evidence(SCHEMA, "tflint-gpu 0", "now", ("train.py",), Environment(), None)
    (tmp_path / "taken").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="cannot write the evidence"):
        save(evidence, tmp_path / "taken" / "evidence.json")
    save(evidence, tmp_path / "evidence.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence.json", "taken"]


def test_a_full_disk_leaves_the_old_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = Evidence(SCHEMA, "tflint-gpu 0", "now", ("train.py",), Environment(), None)
    save(evidence, tmp_path / "evidence.json")
    before = tree(tmp_path)

    def full(_path: Path, data: bytes) -> int:
        os.close(os.open(_path, os.O_CREAT | os.O_WRONLY))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match="No space left on device"):
        save(evidence, tmp_path / "evidence.json")
    monkeypatch.undo()
    assert tree(tmp_path) == before
