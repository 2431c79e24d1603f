"""What a trace tells of the GPUs of a run side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence
    from tflint_gpu.trace.usage import GpuUse

#: One step alone says nothing of how GPUs share their work.
FEW_STEPS = 2


def computing(evidence: Evidence) -> tuple[GpuUse, ...]:
    """Return the GPUs that ran kernels in the traced steps."""
    return tuple(gpu for gpu in evidence.gpus if gpu.computes and gpu.steps)


def replicas(evidence: Evidence) -> tuple[GpuUse, ...]:
    """Return the GPUs that train together over several steps: each computes and takes part in collectives."""
    together = tuple(gpu for gpu in computing(evidence) if gpu.collective_ms and gpu.steps >= FEW_STEPS)
    return together if len(together) > 1 else ()
