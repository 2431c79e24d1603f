from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, gpu, host, write
from tflint_gpu.trace.importer import import_profile


def _two_gpus(path: Path, slower: float) -> Path:
    """Three steps of 1000 µs on two GPUs; the second computes `slower` µs longer, the first waits in NCCL."""
    steps = range(3)
    marks = [at("train", 1000 * step, 1000, step_num=step) for step in steps]
    first = [
        event
        for step in steps
        for event in (
            at("gemm", 1000 * step + 50, 500),
            at("ncclDevKernel_AllReduce", 1000 * step + 550, 200 + slower),
        )
    ]
    second = [
        event
        for step in steps
        for event in (
            at("gemm", 1000 * step + 50, 500 + slower),
            at("ncclDevKernel_AllReduce", 1000 * step + 550 + slower, 200),
        )
    ]
    planes = (
        host({"python": marks}),
        gpu({"Stream #1(Compute)": first}),
        gpu({"Stream #1(Compute)": second}, number=1),
        gpu({}, number=2),
    )
    return write(path / "h.xplane.pb", *planes)


def test_each_gpu_with_its_compute_and_collectives(tmp_path: Path) -> None:
    gpus = import_profile(_two_gpus(tmp_path, slower=150)).evidence.gpus
    assert [(each.name, each.computes, each.steps) for each in gpus] == [
        ("GPU:0", True, 3),
        ("GPU:1", True, 3),
        ("GPU:2", False, 0),
    ]
    assert [each.compute_ms for each in gpus[:2]] == pytest.approx([0.5, 0.65])
    assert [each.collective_ms for each in gpus[:2]] == pytest.approx([0.35, 0.2])
    assert gpus[2].compute_ms is None
