"""How each GPU and host of a run was used, and memory: parts of the evidence that are told device by device."""

from __future__ import annotations

from collections.abc import Sequence
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
class HostUse:
    """One host of a run of several. Times are means in ms per step of its own, None where it shows no steps.

    `input_ms` is its wait for input, `collective_ms` the time in which it only exchanges with the others or waits
    for them; `spread` is the interquartile range of its steps over their median. tf.data shares the training input
    out among `shards`, and `thrown_away_ms` is work on elements that other hosts keep, summed over threads; both
    None where the profile shows no such sharing.
    """

    name: str
    steps: int
    step_ms: float | None = None
    spread: float | None = None
    input_ms: float | None = None
    collective_ms: float | None = None
    shards: int | None = None
    thrown_away_ms: float | None = None

    @property
    def own_ms(self) -> float | None:
        """What the host would take for a step if it never had to wait for the others."""
        return None if self.step_ms is None else self.step_ms - (self.collective_ms or 0.0)


@dataclass(frozen=True)
class Straggler:
    """The host of several that the others wait for, and `share`: how much of the step they do."""

    name: str
    share: float


def straggler(hosts: Sequence[HostUse]) -> Straggler | None:
    """Return the host with the longest work of its own; None where hosts do not exchange, or too few show steps.

    `share` is by how much that is longer than the mean of the others, as a part of the mean step.
    """
    known = [(host.own_ms, host) for host in hosts if host.own_ms is not None]
    if len(known) < 2 or not any(host.collective_ms for _, host in known):
        return None
    longest, slowest = max(known, key=lambda pair: pair[0])
    others = [own for own, host in known if host is not slowest]
    step = sum(host.step_ms or 0.0 for _, host in known) / len(known)
    return Straggler(slowest.name, (longest - sum(others) / len(others)) / step) if step else None


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


@dataclass(frozen=True)
class Copies:
    """Copies between host and device per step.

    In a round trip large data goes to the host and back between two kernels of a step. `round_trip_ms` is how long
    the GPU idles for them, `round_trip_op` the op that the host ran meanwhile ("" where none was recorded).
    """

    host_to_device_bytes: float = 0.0
    device_to_host_bytes: float = 0.0
    host_to_device_count: float = 0.0
    device_to_host_count: float = 0.0
    round_trips: float = 0.0
    round_trip_ms: float = 0.0
    round_trip_op: str = ""


@dataclass(frozen=True)
class Kernels:
    """GPU kernels of the window: count per step, median length in µs, share of device time by kind of work.

    `elementwise_share` includes XLA's fusions (`fused_share`); `occupancy` leaves matrix products out.
    """

    per_step: float
    median_us: float
    tensor_core_share: float | None = None
    gemm_share: float | None = None
    elementwise_share: float | None = None
    float64_share: float | None = None
    transpose_share: float | None = None
    fused_share: float | None = None
    occupancy: float | None = None


@dataclass(frozen=True)
class Samples:
    """NVML samples over the window, means over the GPUs that the run was on; `memory_used_bytes` is the peak.

    `cpu_util` and `io_wait` are shares of the time of the allowed cores. `note` says why there are no counters.
    """

    count: int = 0
    gpu_util: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    throttled: tuple[str, ...] = ()
    other_processes: int | None = None
    cpu_util: float | None = None
    note: str = ""
    io_wait: float | None = None
    pcie_in_bytes_s: float | None = None
    pcie_out_bytes_s: float | None = None
    power_limit_w: float | None = None
