"""NVML through the real pynvml, against a driver library that says what a test wants to hear."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tflint_gpu.trace.nvml import Gpu, Reading
from tflint_gpu.trace.sampler import Sampler, Tick, _summary

ROOT = Path(__file__).parents[2]
SCRIPT = """
import dataclasses, json, os, time
from tflint_gpu.trace.sampler import Sampler
with Sampler(0.02, own=lambda: [os.getpid()]) as sampler:
    time.sleep(0.2)
print(json.dumps(dataclasses.asdict(sampler.samples())))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler to make a driver library with")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True
    )
    return folder


def sampled(driver: Path, mode: str = "") -> dict[str, object]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(ROOT), "MODE": mode}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def test_a_gpu_tells_its_counters(driver: Path):
    found = sampled(driver)
    assert found["count"] > 2
    assert found["gpu_util"] == pytest.approx(0.25)
    assert (found["memory_used_bytes"], found["memory_total_bytes"]) == (400, 1000)
    assert (found["power_w"], found["power_limit_w"]) == (pytest.approx(123), pytest.approx(700))
    assert found["sm_clock_mhz"] == pytest.approx(1500)
    assert found["throttled"] == ["heat (hardware)"]
    assert {found["pcie_in_bytes_s"], found["pcie_out_bytes_s"]} == {5000.0, 7000.0}
    assert found["other_processes"] == 1
    assert found["note"] == ""


def test_in_a_container_other_processes_are_unknown(driver: Path):
    assert sampled(driver, "container")["other_processes"] is None


def test_mig_is_said(driver: Path):
    found = sampled(driver, "mig")
    assert found["gpu_util"] is None
    assert "MIG" in str(found["note"])
    assert found["memory_used_bytes"] == 400


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("unloaded", "not loaded"),
        ("forbidden", "may not talk"),
        ("mismatch", "reboot"),
        ("none", "lists no GPU"),
    ],
)
def test_a_driver_that_does_not_serve_is_told_in_a_sentence(driver: Path, mode: str, words: str):
    found = sampled(driver, mode)
    assert words in str(found["note"])
    assert found["count"] == 0
    assert found["gpu_util"] is None


def test_counters_that_a_gpu_does_not_have_are_unknown_and_said(driver: Path):
    found = sampled(driver, "mute")
    assert found["count"] > 2
    missing = ("gpu_util", "power_w", "power_limit_w", "sm_clock_mhz", "pcie_in_bytes_s", "pcie_out_bytes_s")
    assert [found[name] for name in missing] == [None] * len(missing)
    assert found["memory_used_bytes"] == 400
    assert "does not tell it" in str(found["note"])


def test_a_gpu_that_is_lost_before_or_during_the_run_is_said(driver: Path):
    before = sampled(driver, "lost")
    assert (before["count"], before["gpu_util"]) == (0, None)
    assert "A GPU is lost" in str(before["note"])
    during = sampled(driver, "losing")
    assert during["count"] > 2
    assert during["gpu_util"] == pytest.approx(0.25)
    assert "A GPU is lost" in str(during["note"])


def test_no_driver_at_all(tmp_path: Path):
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    assert "no NVIDIA driver" in str(sampled(tmp_path)["note"])


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="CPU time is read from /proc")
def test_cpu_time_of_the_allowed_cores():
    with Sampler(0.05) as sampler:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            sum(range(1000))
    found = sampler.samples()
    assert 0 < found.cpu_util <= 1
    assert 0 <= found.io_wait < 1


READING = Reading(0.5, 10, 100.0, 1000.0, 0, None, None, ())


def ticks(*moments: tuple[float, float]) -> list[Tick]:
    return [Tick(at, (dataclasses.replace(READING, util=util),), None) for at, util in moments]


def test_only_the_window_counts():
    sampler = Sampler()
    sampler._gpus = (Gpu(0, "x", None),)
    sampler._ticks = ticks((1.0, 0.0), (2.0, 0.4), (3.0, 0.6), (4.0, 1.0))
    assert sampler.samples(1.5, 3.5).gpu_util == pytest.approx(0.5)
    assert sampler.samples(2.4, 2.6).gpu_util == pytest.approx(0.4)
    assert sampler.samples().count == 4


def test_of_several_gpus_only_those_of_the_run_count():
    idle = dataclasses.replace(READING, util=0.0, pids=())
    busy = dataclasses.replace(READING, util=0.8, pids=(7, 8), throttle_bits=0x04)
    both = (Gpu(0, "a", None, memory_bytes=50), Gpu(1, "b", None, memory_bytes=60))
    found = _summary([Tick(1.0, (idle, busy), (1, 1, 10)), Tick(2.0, (idle, busy), (5, 2, 20))], both, {7}, "")
    assert found.gpu_util == pytest.approx(0.8)
    assert found.memory_total_bytes == 60
    assert found.other_processes == 1
    assert found.throttled == ("power cap",)
    assert (found.cpu_util, found.io_wait) == (pytest.approx(0.4), pytest.approx(0.1))
