import json
import os
from pathlib import Path

import pytest

from tests.trace.profile.spaces import SHARED, at, gpu, host, needs_profiles, write
from tflint_gpu.cli import invoke


@pytest.fixture
def logdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile of two steps, 30 % of which the GPU is busy and 50 % waits for input."""
    monkeypatch.chdir(tmp_path)
    marks = [at("train", start, 1000, step_num=n) for n, start in enumerate((0, 1000))]
    waits = [at("IteratorGetNextOp::DoCompute", start + 100, 500) for start in (0, 1000)]
    kernels = [at("volta_sgemm", start + 600, 300) for start in (0, 1000)]
    run_folder = tmp_path / "logs" / "plugins" / "profile" / "2026_01_01_00_00_00"
    write(
        run_folder / "h.xplane.pb",
        host({"python": marks, "tf_data_iterator_get_next": waits}),
        gpu({"Stream #1": kernels}),
    )
    return tmp_path / "logs"


def test_the_report_opens_with_what_the_gpu_waits_for(logdir: Path, capsys: pytest.CaptureFixture[str]):
    status = invoke(["import", str(logdir)])
    out = capsys.readouterr().out
    assert status in (0, 1)
    assert out.splitlines()[0].startswith("GPU busy 30 % of the step; 50 % of it waits for input")
    assert "GPU:0" in out
    assert "kernels: 1 a step" in out


def test_json_is_json_and_evidence_is_written(logdir: Path, capsys: pytest.CaptureFixture[str]):
    invoke(["import", str(logdir), "--output-format", "json", "-o", "evidence.json"])
    trace = json.loads(capsys.readouterr().out)["trace"]
    assert trace["gpu_busy_share"] == pytest.approx(0.3)
    assert [step["buckets"]["input_wait"] for step in trace["steps"]] == pytest.approx([0.5, 0.5])
    assert Path("evidence.json").is_file()


@pytest.mark.parametrize("call", [["import", "-o"], ["attach", "-o"], ["trace", "--evidence-out"]])
def test_evidence_never_takes_the_place_of_an_input(
    call: list[str], logdir: Path, capsys: pytest.CaptureFixture[str]
):
    profile = next(logdir.rglob("*.xplane.pb"))
    script = logdir.parent / "train.py"
    script.write_text("raise SystemExit('it must not run')\n")
    for file in (profile, script):
        before = file.read_bytes()
        assert (
            invoke([*call, str(file), {"import": str(profile), "attach": "localhost:1"}.get(call[0], str(script))])
            == 2
        )
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.strip().splitlines()[-1].startswith(f"tflint-gpu: {file}: there already, and not evidence")
        assert len(told.err.strip().splitlines()) == 1
        assert file.read_bytes() == before


def test_what_is_neither_file_nor_folder_is_not_called_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    os.mkfifo(tmp_path / "pipe")
    assert invoke(["import", str(tmp_path / "pipe")]) == 2
    assert "pipe: neither a file nor a folder; give a TensorBoard log folder" in capsys.readouterr().err


def test_no_profile_is_one_sentence_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert invoke(["import", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert "no profile here or below" in told.err


@needs_profiles
def test_every_damaged_file_is_one_sentence_and_status_2(capsys: pytest.CaptureFixture[str]):
    for file in sorted((SHARED / "corrupt").iterdir()):
        assert invoke(["import", str(file)]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.strip().splitlines()) == 1
        assert file.name in told.err


@needs_profiles
def test_bert_names_its_two_gpus(capsys: pytest.CaptureFixture[str]):
    invoke(["import", str(SHARED / "v100x8-bert")])
    out = capsys.readouterr().out
    assert "74.9 %" in out
    assert "69.9 %" in out
    assert out.startswith("GPU busy 72 % of the step")


def test_a_window_without_marked_steps_accuses_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    kernels = [at("fusion", 0, 10), at("fusion", 900, 100)]
    launches = [at("cuLaunchKernel", 100, 700, correlation_id=1)]
    file = write(tmp_path / "h.xplane.pb", host({"python": launches}), gpu({"Stream #1": kernels}))
    assert invoke(["import", str(file), "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == []
    assert report["trace"]["gpu_busy_share"] == pytest.approx(0.11)
