import dataclasses
import os
import sys
from pathlib import Path

import pytest

from tflint_gpu.cli.doctor import table
from tflint_gpu.errors import UserError
from tflint_gpu.trace.machine import Facts, examine, judge

#: A Linux machine with a driver and a card, and a TensorFlow for CUDA that sees nothing yet.
SOUND = Facts(
    python="py",
    system="linux",
    interpreter="3.11.7",
    packages={"tensorflow": "2.21.0"},
    tensorflow="2.21.0",
    cuda_build=True,
    build={"cuda_version": "12.5.1", "cudnn_version": "9", "cuda_compute_capabilities": "['sm_80', 'compute_90']"},
    driver="570.1",
    cards=(("NVIDIA H200", "9.0"),),
)


def but(**changes):
    return dataclasses.replace(SOUND, **changes)


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        (but(gpus=("NVIDIA H200 (compute capability 9.0)",)), 0, "sees 1 GPU: NVIDIA H200"),
        (but(tensorflow=None, problem="No module named 'tensorflow'"), 2, "cannot be imported by py"),
        (but(visible="-1"), 1, "CUDA_VISIBLE_DEVICES='-1' hides every GPU"),
        (but(visible=""), 1, "hides every GPU"),
        (but(packages={"tensorflow-cpu": "2.15.0"}, cuda_build=False), 1, "tensorflow-cpu is built without GPU"),
        (but(cuda_build=False), 1, "tensorflow[and-cuda]"),
        (but(system="windows", cuda_build=False), 1, "no GPU support on Windows"),
        (but(system="macos", cuda_build=False), 1, "tensorflow-metal"),
        (but(driver=None, cards=(), no_driver="no NVIDIA driver is installed on this machine"), 1, "--gpus all"),
        (but(driver=None, cards=(), no_driver="x", system="wsl"), 1, "Windows driver"),
        (but(cards=()), 1, "lists no GPU"),
        (
            but(log=("Cannot dlopen some GPU libraries.",)),
            1,
            "built for CUDA 12.5.1, does not find its CUDA libraries",
        ),
        (but(missing=("libcudnn.so.8",)), 1, "libcudnn.so.8"),
        (but(log=("E] failed call to cuInit: CUDA_ERROR_UNKNOWN",)), 1, "refuses to start CUDA"),
        (but(), 1, "gives no reason"),
        (but(visible="0"), 1, "gives no reason"),
    ],
)
def test_the_first_reason_to_mend_is_told(facts, status, words):
    verdict = judge(facts)
    assert verdict.status == status
    assert words in verdict.sentence


def test_the_table_names_every_part():
    rows = dict(table(SOUND))
    assert rows["cards"] == "NVIDIA H200 (9.0)"
    assert rows["built for"] == "CUDA 12.5.1, cuDNN 9"
    assert rows["compute capabilities"] == "sm_80, compute_90"
    assert "built for" not in dict(table(but(tensorflow=None)))


def _interpreter(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(os.name == "nt", reason="stands in for an interpreter with a shell script")
def test_interpreters_that_cannot_be_asked(tmp_path: Path):
    with pytest.raises(UserError, match="cannot be started"):
        examine(str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"could not be asked \(exit status 3\): broken"):
        examine(_interpreter(tmp_path / "dies", "echo broken >&2; exit 3"))
    with pytest.raises(UserError, match="exit status 3") as told:
        examine(_interpreter(tmp_path / "talks", "printf '%09000d' 7 >&2; exit 3"))
    assert len(str(told.value)) < 400 + len(str(tmp_path))
    with pytest.raises(UserError, match="no answer within 1 s"):
        examine(_interpreter(tmp_path / "hangs", "exec sleep 20"), timeout=1)


@pytest.mark.skipif(os.name == "nt", reason="stands in for an interpreter with a shell script")
def test_the_log_of_tensorflow_is_read(tmp_path: Path):
    log = "W x] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open\\n2 other line"
    answer = '{"python": "3.9", "packages": {}, "tensorflow": "2.8.4", "problem": null, "cuda_build": true}'
    facts = examine(_interpreter(tmp_path / "old", f"printf \"{log}\" >&2; echo '{answer}'"))
    assert facts.missing == ("libcudnn.so.8",)
    assert len(facts.log) == 1


def test_an_interpreter_without_tensorflow(tmp_path: Path):
    isolated = _interpreter(tmp_path / "bare", f'exec {sys.executable} -S -I "$@"')
    verdict = judge(examine(isolated))
    assert verdict.status == 2


@pytest.mark.trace
def test_the_tensorflow_of_this_interpreter():
    pytest.importorskip("tensorflow")
    facts = examine(sys.executable)
    assert facts.tensorflow
    assert judge(facts).status in (0, 1)
    assert facts.packages
