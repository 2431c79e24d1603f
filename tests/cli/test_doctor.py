import sys
from pathlib import Path

import pytest

from tflint_gpu.cli import invoke
from tflint_gpu.trace import machine


def test_the_verdict_stands_last_and_gives_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    facts = machine.Facts(python="py", system="linux", tensorflow="2.21.0", cuda_build=True, gpus=("H200",))
    monkeypatch.setattr(machine, "examine", lambda python: facts)
    assert invoke(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "TensorFlow 2.21.0 sees 1 GPU: H200."


def test_an_interpreter_that_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert invoke(["doctor", "--python", str(tmp_path / "none")]) == 2
    assert "cannot be started" in capsys.readouterr().err


def test_an_interpreter_without_tensorflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    assert invoke(["doctor", "--python", str(bare)]) == 2
    assert "TensorFlow cannot be imported" in capsys.readouterr().out
