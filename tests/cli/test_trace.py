"""The command `trace` from outside: sentences, exit status, and the merged report of one real run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.conftest import SCRIPTS
from tflint_gpu.cli import invoke
from tflint_gpu.cli.options import FORMATS

ROOT = Path(__file__).parents[2]


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own in `folder`."""
    command = [sys.executable, "-m", "tflint_gpu", "trace", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def refused(folder: Path, *arguments: str) -> str:
    """Return the one sentence that the command ends with; it must be one line, with status 2 and no output."""
    done = call(folder, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("trace: ")]
    assert len(lines) == 1, lines
    return lines[0]


def test_what_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import tensorflow as tf\nfor x in:\n    pass\n")
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\0\0\1\2")
    (tmp_path / "empty.ipynb").write_text("no json")
    assert "no such file" in refused(tmp_path, "missing.py")
    assert "a folder" in refused(tmp_path, ".")
    if sys.platform == "linux":
        unreadable = os.fsdecode(b"\xfe.py")
        (tmp_path / unreadable).write_text("")
        assert "rename it" in refused(tmp_path, unreadable)
    assert "broken.py:2: not valid Python" in refused(tmp_path, "broken.py")
    assert "binary" in refused(tmp_path, "binary.py")
    assert "not a notebook" in refused(tmp_path, "empty.ipynb")
    assert "no such module" in refused(tmp_path, "-m", "nowhere.train")
    (tmp_path / "whole").mkdir()
    assert "a package without __main__.py" in refused(tmp_path, "-m", "whole")
    assert not (tmp_path / ".tflint-gpu").exists()


def test_no_script_at_all(tmp_path: Path) -> None:
    done = call(tmp_path)
    assert done.returncode == 2
    assert "name the script" in done.stderr


def test_what_follows_the_module_is_its_own_as_with_python(tmp_path: Path) -> None:
    assert "no such module" in refused(tmp_path, "-m", "nowhere.train", "--name", "x", "-m", "--steps")


def test_an_interpreter_without_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    text = refused(tmp_path, "--python", "bare/bin/python", "train.py")
    assert "has no TensorFlow" in text
    assert "--python" in text


@pytest.fixture
def tensorflow() -> None:
    pytest.importorskip("tensorflow")


@pytest.mark.usefixtures("tensorflow")
def test_scripts_that_never_get_to_a_step(tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text("import json\n\n\nprint(json.loads('{'))\n")
    (tmp_path / "idle.py").write_text("print('done')\n")
    (tmp_path / "usage.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()\n"
    )
    (tmp_path / "hang.py").write_text("import time\n\n\ndef wait():\n    time.sleep(600)\n\n\nwait()\n")
    crash = refused(tmp_path, "crash.py")
    assert "crashed before its first step at crash.py:4: JSONDecodeError" in crash
    (tmp_path / "part.py").write_text("from . import crash\n")
    assert "trace it as a module: -m" in refused(tmp_path, "part.py")
    assert "never imported TensorFlow" in refused(tmp_path, "idle.py")
    assert "arguments are required: data" in refused(tmp_path, "usage.py")
    hang = refused(tmp_path, "--deadline", "2", "hang.py")
    assert "time ran out at hang.py:5 (in wait)" in hang
    assert "--deadline" in hang


@pytest.mark.trace
@pytest.mark.usefixtures("tensorflow")
def test_a_script_that_never_trains(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(
        "import tensorflow as tf\nfor x in tf.data.Dataset.range(100).batch(2):\n    print(tf.reduce_sum(x))\n"
    )
    assert "without a training step" in refused(tmp_path, "show.py")


@pytest.mark.trace
@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize("form", ["concise", "json"])
def test_a_script_that_fails_after_its_steps_is_told_beside_every_report(tmp_path: Path, form: str) -> None:
    (tmp_path / "late.py").write_text((SCRIPTS / "short_loop.py").read_text() + "print({}['f1'])\n")
    done = call(tmp_path, "--what-if", "none", "--output-format", form, "late.py")
    assert done.returncode in (0, 1), done.stderr
    (told,) = (line for line in done.stderr.splitlines() if "failed after its steps" in line)
    assert "late.py:30: KeyError: 'f1'" in told
    assert "Traceback" not in done.stderr


@pytest.mark.trace
@pytest.mark.usefixtures("tensorflow")
def test_the_main_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow_input.py").write_text((SCRIPTS / "slow_input.py").read_text())
    reports = [f"--output={form}:{form}.out" for form in FORMATS]
    status = invoke(
        ["trace", "--what-if", "none", "--output-format", "json", "--isolated", *reports, "slow_input.py"]
    )
    printed = capsys.readouterr().out
    told = json.loads(printed)
    assert status in (0, 1)
    assert told["trace"]["steps"]
    verdicts = {(finding["name"], finding["verdict"]) for finding in told["findings"]}
    assert ("python-op-in-map", "confirmed") in verdicts
    assert (tmp_path / ".tflint-gpu" / "evidence.json").exists()
    assert (tmp_path / ".tflint-gpu" / ".gitignore").read_text() == "*\n"
    assert told["target"]["from"] == "traced run"
    for form in FORMATS:
        elsewhere = without_tensorflow(tmp_path, "--output-format", form, "--no-color")
        assert elsewhere.returncode == status
        assert elsewhere.stdout == (tmp_path / f"{form}.out").read_text(), form
    moved = tmp_path / "slow_input.py"
    moved.write_text("# a licence\n\n" + moved.read_text())
    now = json.loads(without_tensorflow(tmp_path, "--output-format", "json").stdout)
    places = {(each["name"], each["verdict"], each["line"]) for each in told["findings"]}
    assert {(name, verdict, line + 2) for name, verdict, line in places} == {
        (each["name"], each["verdict"], each["line"]) for each in now["findings"]
    }
    moved.write_text(moved.read_text().replace("numpy_function(", "py_function("))
    changed = without_tensorflow(tmp_path, "--output-format", "json")
    assert "slow_input.py has changed since the trace" in changed.stderr
    verdicts = {(each["name"], each["verdict"]) for each in json.loads(changed.stdout)["findings"]}
    assert ("python-op-in-map", "unmeasured") in verdicts


#: Hides TensorFlow and Keras from an interpreter, as where neither is installed.
HIDING = """
import importlib.abc, importlib.metadata, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ImportError(name)

def version(name, real=importlib.metadata.version):
    if name.startswith(("tensorflow", "keras")):
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)

sys.meta_path.insert(0, Hidden())
importlib.metadata.version = version
"""


def without_tensorflow(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Check ``slow_input.py`` with its evidence by an interpreter that finds no TensorFlow."""
    (folder / "hiding").mkdir(exist_ok=True)
    (folder / "hiding" / "sitecustomize.py").write_text(HIDING)
    environment = {"PYTHONPATH": f"{folder / 'hiding'}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    evidence = ("--evidence", ".tflint-gpu/evidence.json", "--isolated")
    command = [sys.executable, "-m", "tflint_gpu", "check", *evidence, *options, "slow_input.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.trace
@pytest.mark.usefixtures("tensorflow")
def test_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = (SCRIPTS / "agent.py").read_text()
    first, _, second = code.partition("state = ")
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# An agent"]},
        {
            "cell_type": "code",
            "metadata": {},
            "source": ["%matplotlib inline\n", first],
            "outputs": [],
            "execution_count": 1,
        },
        {
            "cell_type": "code",
            "metadata": {},
            "source": ["state = " + second],
            "outputs": [],
            "execution_count": 2,
        },
    ]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": cells}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.ipynb").write_text(json.dumps(notebook))
    assert invoke(["trace", "--what-if", "none", "--output-format", "json", "--isolated", "agent.ipynb"]) in (0, 1)
    evidence = json.loads((tmp_path / ".tflint-gpu" / "evidence.json").read_text())
    assert evidence["window"]["spot"]["path"] == "agent.ipynb"
    assert evidence["window"]["spot"]["cell"] == 3
    assert set(evidence["executed"]) == {"agent.ipynb#2", "agent.ipynb#3"}
    capsys.readouterr()
