"""How each GPU of a run was used, and its memory: parts of the evidence that are told device by device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuUse:
    """One GPU of the profile. Times are ms per step of its own; shares are of its steps.

    `computes` says that kernels ran on it. `compute_ms` is the union of its kernels without collectives, in which
    a GPU that is early waits for the others; `collective_ms` is the union of those.
    """

    name: str
    computes: bool
    busy_share: float | None = None
    compute_ms: float | None = None
    collective_ms: float | None = None
    steps: int = 0


@dataclass(frozen=True)
class Memory:
    """TensorFlow's allocator of the GPU that was fullest in the window, by its own events; bytes.

    `limit_bytes` is what it may take, `peak_bytes` the most that was in use at once. `growth_bytes` is by how much
    the least that is in use within a step rises from one step to the next, `rising` the share of steps in which it
    does; both None where fewer than five steps were seen.
    """

    allocator: str
    limit_bytes: int
    peak_bytes: int
    growth_bytes: float | None = None
    rising: float | None = None

    @property
    def used_share(self) -> float:
        """The peak as a share of the limit."""
        return self.peak_bytes / self.limit_bytes if self.limit_bytes else 0.0
