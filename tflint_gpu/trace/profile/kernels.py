"""Sums up GPU kernels: how many, how long, and what kind of work they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from tflint_gpu.trace.evidence import Kernels
from tflint_gpu.trace.profile import names
from tflint_gpu.trace.profile.device import Kernel


def kernel_stats(kernels: Sequence[Kernel], steps: int, amd: bool) -> Kernels:
    """Sum up `kernels`. Matrix cores of AMD show in no kernel name, so there the tensor-core share is unknown."""
    total = sum(kernel.end - kernel.start for kernel in kernels) or 1

    def share(wanted: Iterable[Kernel]) -> float:
        return sum(kernel.end - kernel.start for kernel in wanted) / total

    return Kernels(
        per_step=len(kernels) / steps,
        median_us=statistics.median(kernel.end - kernel.start for kernel in kernels) / 1e6,
        tensor_core_share=None if amd else share(k for k in kernels if names.uses_tensor_cores(k.name)),
        gemm_share=share(k for k in kernels if names.is_gemm(k.name)),
        transpose_share=share(k for k in kernels if names.is_transpose(k.name)),
        elementwise_share=share(k for k in kernels if names.is_elementwise(k.name)),
        float64_share=share(k for k in kernels if names.is_float64(k.name)),
        fused_share=share(k for k in kernels if names.is_fused(k.name)),
        occupancy=_occupancy(kernels),
    )


def _occupancy(kernels: Iterable[Kernel]) -> float | None:
    told = [(k.end - k.start, k.occupancy) for k in kernels if k.occupancy and not names.is_gemm(k.name)]
    total = sum(time for time, _ in told)
    return sum(time * share for time, share in told) / total if total else None
