import os
from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, gpu, host, write
from tflint_gpu.errors import UserError
from tflint_gpu.trace.profile import read_profile
from tflint_gpu.trace.profile.layout import find_run


def test_the_newest_run_is_taken_and_said(tmp_path: Path):
    for run, kernel in (("2024_01_01_10_00_00", "old"), ("2024_03_01_10_00_00", "new")):
        stream = {"Stream #1": [at(kernel, 0, 10)]}
        write(tmp_path / "train" / "plugins" / "profile" / run / "host.xplane.pb", gpu(stream))
    os.utime(tmp_path / "train" / "plugins" / "profile" / "2024_01_01_10_00_00")
    found = read_profile(tmp_path)
    assert "2024_03_01_10_00_00" in found.notes[0]
    assert "1 older" in found.notes[0]


def test_all_hosts_of_a_run_are_joined(tmp_path: Path):
    for name in "ab":
        marks = host({"python": [at("train", 0, 100, step_num=1), at("train", 100, 100, step_num=2)]})
        write(tmp_path / f"{name}.xplane.pb", marks, gpu({"Stream #1": [at("gemm", 0, 50), at("gemm", 120, 50)]}))
    found = read_profile(tmp_path)
    assert len(found.steps) == 4
    assert found.kernels.per_step == 1
    assert any("2 hosts" in note for note in found.notes)


def test_a_folder_without_a_profile(tmp_path: Path):
    with pytest.raises(UserError, match="no profile here or below"):
        find_run(tmp_path)
    with pytest.raises(UserError, match="no such file or folder"):
        find_run(tmp_path / "gone")


def test_a_folder_with_tables_only(tmp_path: Path):
    (tmp_path / "host.overview_page.pb").write_bytes(b"")
    assert find_run(tmp_path).tools
    with pytest.raises(UserError, match="tflint-gpu import"):
        read_profile(tmp_path)


def test_timelines_lie_among_other_json(tmp_path: Path):
    (tmp_path / "a.json").write_text('{"traceEvents": []}')
    (tmp_path / "b.json").write_text('{"config": 1}')
    assert [file.name for file in find_run(tmp_path).timelines] == ["a.json"]
