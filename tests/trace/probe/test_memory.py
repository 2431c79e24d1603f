from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tflint_gpu.trace.probe import memory
from tflint_gpu.trace.probe.memory import Room, host_limit


def test_what_the_host_has_left(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    1000 kB\n")
    used = memory.host_peak()
    assert used is not None
    assert used > 1_000_000
    assert host_limit(str(tmp_path / "meminfo")) == pytest.approx(used + 1_024_000, rel=0.01)


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("MemTotal: 9 kB\n")
    assert host_limit(str(tmp_path / "other")) is None
    assert host_limit(str(tmp_path / "absent")) is None


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
    assert (room.peak(), room.peak()) == (100, 300)
    assert room.limit == 9000


def test_a_tensorflow_that_does_not_tell() -> None:
    run = gpu_run([1])
    del run.tensorflow.config.experimental.get_memory_info
    assert Room(run).peak() is None
