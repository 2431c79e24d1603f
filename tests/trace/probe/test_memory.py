from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tflint_gpu.trace.probe import memory
from tflint_gpu.trace.probe.memory import Room, host_limit

GB = 1_000_000_000


def meminfo(folder: Path, kilobytes: int) -> str:
    file = folder / "meminfo"
    file.write_text(f"MemTotal: 9 kB\nMemAvailable:    {kilobytes} kB\n")
    return str(file)


def test_what_the_host_has_left(tmp_path: Path) -> None:
    used = memory.status("VmRSS")
    assert used is not None
    assert used > 1_000_000
    told = host_limit(meminfo(tmp_path, 1000), groups=())
    assert told == pytest.approx(used + 1_024_000, rel=0.02)


def test_a_control_group_leaves_less(tmp_path: Path) -> None:
    most, now = tmp_path / "memory.max", tmp_path / "memory.current"
    most.write_text("5000000\n")
    now.write_text("2000000\n")
    files = [(str(most), str(now))]
    used = memory.status("VmRSS")
    assert used is not None
    assert host_limit(meminfo(tmp_path, 1_000_000), files) == pytest.approx(used + 3_000_000, rel=0.02)
    most.write_text("max\n")
    unbound = host_limit(meminfo(tmp_path, 1_000_000), files)
    assert unbound == pytest.approx(used + 1_024_000_000, rel=0.02)


def test_a_limit_of_the_process_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped, used = memory.status("VmSize"), memory.status("VmRSS")
    assert mapped is not None
    assert used is not None
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _which: (mapped + GB, mapped + GB))
    assert host_limit(meminfo(tmp_path, 90_000_000), groups=()) == pytest.approx(used + GB, rel=0.02)


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("MemTotal: 9 kB\n")
    assert host_limit(str(tmp_path / "other")) is None
    assert host_limit(str(tmp_path / "absent")) is None


def test_the_peak_of_the_host_is_that_since_it_was_forgotten() -> None:
    block = bytearray(200_000_000)
    block[::4096] = b"x" * len(block[::4096])
    before = memory.host_peak()
    del block
    assert before is not None
    if not memory.forget_host_peak():
        pytest.skip("this system does not forget the peak of a process")
    after = memory.host_peak()
    assert after is not None
    assert before - after > 100_000_000


def gpu_run(peaks: list[int]) -> SimpleNamespace:
    """Return a run on a GPU whose allocator tells `peaks`, one after the other."""
    told = iter(peaks)
    experimental = SimpleNamespace(
        get_memory_info=lambda _device: {"current": 0, "peak": next(told)}, reset_memory_stats=lambda _device: None
    )
    config = SimpleNamespace(list_logical_devices=lambda _kind: ["GPU:0"], experimental=experimental)
    return SimpleNamespace(tensorflow=SimpleNamespace(config=config))


def test_the_gpu_counts_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "gpu_limit", lambda: 10_000)
    room = Room(gpu_run([100, 300]))
    assert room.begin()
    assert (room.peak(), room.peak()) == (100, 300)
    assert room.limit == 9000


def test_a_tensorflow_that_does_not_tell() -> None:
    run = gpu_run([1])
    del run.tensorflow.config.experimental.get_memory_info
    assert Room(run).peak() is None
