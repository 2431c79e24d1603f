from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.profile.spaces import SHARED, Event, at, gpu, host, needs_profiles, write
from tflint_gpu.trace.profile import read_profile


def _allocated(start: float, in_use: int, name: str = "GPU_0_bfc") -> Event:
    return at(
        "MemoryAllocation",
        start,
        0,
        allocator_name=name,
        bytes_allocated=in_use,
        bytes_available=1000 - in_use,
        bytes_reserved=0,
    )


def _profile(path: Path, *events: Event, steps: int = 6) -> Path:
    marks = [at("train", 100 * step, 90, step_num=step) for step in range(steps)]
    kernels = {"Stream #1(Compute)": [at("relu", 100 * step + 10, 50) for step in range(steps)]}
    return write(path / "h.xplane.pb", host({"python": [*marks, *events]}), gpu(kernels))


def test_growth_is_of_the_least_in_use_in_each_step(tmp_path: Path) -> None:
    levels = [
        event
        for step in range(6)
        for event in (_allocated(100 * step + 5, 100 + 10 * step), _allocated(100 * step + 50, 700))
    ]
    memory = read_profile(_profile(tmp_path, *levels)).memory
    assert memory is not None
    assert (memory.allocator, memory.limit_bytes, memory.peak_bytes) == ("GPU_0_bfc", 1000, 700)
    assert memory.growth_bytes == pytest.approx(10)
    assert memory.rising == 1.0


def test_a_level_that_returns_does_not_grow(tmp_path: Path) -> None:
    memory = read_profile(_profile(tmp_path, *(_allocated(100 * step + 5, 100) for step in range(6)))).memory
    assert memory is not None
    assert (memory.growth_bytes, memory.rising) == (0, 0)


def test_few_steps_show_no_trend(tmp_path: Path) -> None:
    memory = read_profile(_profile(tmp_path, _allocated(5, 100), _allocated(105, 200), steps=2)).memory
    assert memory is not None
    assert memory.peak_bytes == 200
    assert memory.growth_bytes is None


def test_the_fullest_gpu_counts_and_host_memory_does_not(tmp_path: Path) -> None:
    levels = (_allocated(5, 100), _allocated(6, 300, "GPU_1_bfc"), _allocated(7, 900, "gpu_host_bfc"))
    memory = read_profile(_profile(tmp_path, *levels)).memory
    assert memory is not None
    assert (memory.allocator, memory.used_share) == ("GPU_1_bfc", 0.3)


def test_a_profile_without_such_events_tells_nothing(tmp_path: Path) -> None:
    assert read_profile(_profile(tmp_path)).memory is None


@needs_profiles
def test_bert_on_v100_uses_a_third_of_its_memory() -> None:
    memory = read_profile(SHARED / "v100x8-bert").memory
    assert memory is not None
    assert memory.used_share == pytest.approx(0.40, abs=0.01)
    assert memory.limit_bytes == pytest.approx(15.5e9, rel=0.01)
