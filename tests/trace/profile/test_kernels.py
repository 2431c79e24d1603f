from __future__ import annotations

import pytest

from tests.trace.profile.spaces import at, gpu, write
from tflint_gpu.trace.profile import read_profile
from tflint_gpu.trace.profile.device import Kernel
from tflint_gpu.trace.profile.kernels import kernel_stats


def _kernel(name: str, length: int, occupancy: float | None = None) -> Kernel:
    return Kernel(0, length, name, "", occupancy=occupancy)


def test_fusions_are_told_from_other_elementwise_kernels() -> None:
    kernels = [_kernel("EigenMetaKernel<Sum>", 10), _kernel("loop_add_fusion_3", 20), _kernel("sgemm_128", 70)]
    found = kernel_stats(kernels, 1, amd=False)
    assert found.elementwise_share == pytest.approx(0.3)
    assert found.fused_share == pytest.approx(0.2)


def test_occupancy_by_time_without_matrix_products() -> None:
    kernels = [_kernel("relu", 10, 0.5), _kernel("softmax", 30, 0.1), _kernel("sgemm_128", 70, 0.12)]
    assert kernel_stats(kernels, 1, amd=False).occupancy == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("details", "occupancy"), [("grid:1,1,1 occ_pct:25", 0.25), (" occ_pct:0", None), ("", None)]
)
def test_occupancy_of_the_file_where_it_is_told(tmp_path, details, occupancy) -> None:
    streams = {"Stream #1(Compute)": [at("relu", 0, 10, kernel_details=details)]}
    found = read_profile(write(tmp_path / "h.xplane.pb", gpu(streams))).kernels
    assert found.occupancy == occupancy
