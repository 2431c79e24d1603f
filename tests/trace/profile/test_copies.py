from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.trace.profile.spaces import Event, at, gpu, host, write
from tflint_gpu.trace.evidence import Copies
from tflint_gpu.trace.profile import read_profile

LARGE = "kind_src:device size:1000000 dest:0 async:1"
SMALL = "kind_src:device size:8 dest:0 async:1"


def _copies(
    path: Path, kernels: Sequence[tuple[float, float]], copies: Sequence[Event], ops: Sequence[Event] = ()
) -> Copies:
    """Two steps of 1000 µs, each with the same `kernels`, `copies` and host `ops`; times within the step."""
    starts = (0.0, 1000.0)
    marks = [at("train", start, 1000, step_num=step) for step, start in enumerate(starts)]
    moved = [(name, start + base, length, stats) for base in starts for name, start, length, stats in copies]
    worked = [(name, start + base, length, stats) for base in starts for name, start, length, stats in ops]
    streams = {
        "Stream #1(Compute)": [at("gemm", base + start, length) for base in starts for start, length in kernels],
        "Stream #2(Memcpy)": moved,
    }
    found = read_profile(write(path / "h.xplane.pb", host({"python": marks, "pool": worked}), gpu(streams))).copies
    assert found is not None
    return found


OUT, BACK = at("MemcpyD2H", 300, 20, memcpy_details=LARGE), at("MemcpyH2D", 500, 20, memcpy_details=LARGE)
AROUND = ((100, 200), (600, 200))


def test_a_round_trip_between_kernels_names_what_the_host_did(tmp_path: Path) -> None:
    ops = (at("head/Unique:Unique", 330, 160), at("head/Shape:Shape", 322, 2))
    found = _copies(tmp_path, AROUND, (OUT, BACK), ops)
    assert found.round_trips == 1
    assert found.round_trip_ms == pytest.approx(0.22)
    assert found.round_trip_op == "Unique"


@pytest.mark.parametrize(
    ("kernels", "copies"),
    [
        (AROUND, (at("MemcpyD2H", 300, 20, memcpy_details=SMALL), BACK)),
        (AROUND, (OUT, at("MemcpyH2D", 500, 20, memcpy_details=SMALL))),
        (((100, 200),), (OUT, BACK)),
        (((600, 200),), (OUT, BACK)),
        (((100, 700),), (OUT, BACK)),
        (AROUND, (OUT,)),
        (AROUND, (at("MemcpyH2D", 30, 20, memcpy_details=LARGE), at("MemcpyD2H", 800, 20, memcpy_details=LARGE))),
    ],
    ids=[
        "a scalar leaves",
        "a size comes back",
        "a result at the end, and the next batch",
        "a batch at the start",
        "kernels run meanwhile",
        "nothing comes back",
        "in first, out last",
    ],
)
def test_no_round_trip(tmp_path: Path, kernels: Sequence[tuple[float, float]], copies: Sequence[Event]) -> None:
    found = _copies(tmp_path, kernels, copies)
    assert (found.round_trips, found.round_trip_ms, found.round_trip_op) == (0, 0, "")


def test_bytes_and_numbers_per_step(tmp_path: Path) -> None:
    found = _copies(tmp_path, AROUND, (OUT, BACK))
    assert (found.host_to_device_bytes, found.device_to_host_bytes) == (1e6, 1e6)
    assert (found.host_to_device_count, found.device_to_host_count) == (1, 1)
