"""Sums up GPU kernels: how many, how long, and what kind of work they are."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tflint_gpu.trace.evidence import Kernels
from tflint_gpu.trace.profile import names
from tflint_gpu.trace.profile.device import Kernel


def kernel_stats(kernels: Sequence[Kernel], steps: int, amd: bool) -> Kernels:
    """Sum up `kernels`. Matrix cores of AMD show in no kernel name, so there the tensor-core share is unknown."""
    spent = Counter[str]()
    for kernel in kernels:
        spent[kernel.name] += kernel.end - kernel.start
    total = sum(spent.values()) or 1

    def share(wanted: Callable[[str], bool]) -> float:
        return sum(time for name, time in spent.items() if wanted(name)) / total

    return Kernels(
        per_step=len(kernels) / steps,
        median_us=statistics.median([kernel.end - kernel.start for kernel in kernels]) / 1e6,
        tensor_core_share=None if amd else share(names.uses_tensor_cores),
        gemm_share=share(names.is_gemm),
        transpose_share=share(names.is_transpose),
        elementwise_share=share(names.is_elementwise),
        float64_share=share(names.is_float64),
        fused_share=share(names.is_fused),
        occupancy=_occupancy(kernels),
    )


def _occupancy(kernels: Iterable[Kernel]) -> float | None:
    told = [(k.end - k.start, k.occupancy) for k in kernels if k.occupancy and not names.is_gemm(k.name)]
    total = sum(time for time, _ in told)
    return sum(time * share for time, share in told) / total if total else None
