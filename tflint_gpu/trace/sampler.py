"""Samples the machine while a script runs: NVML's counters of the GPUs, and how busy the allowed CPU cores are.

The counters say whether *any* kernel ran in NVML's own last sample period: a stream of tiny kernels reads 100 %.
They are for power, clocks, memory and company on the card; how busy the GPU is, is read from the profile.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from tflint_gpu.trace.evidence import Samples
from tflint_gpu.trace.nvml import THROTTLES, Gpu, Nvml, Reading, open_nvml

#: A reason for lowered clocks counts when it held in this share of the samples.
_OFTEN = 0.1
_STAT = Path("/proc/stat")
_LOST = "A GPU is lost: the driver gets no answer from it any more; reset it or reboot (see dmesg)."


@dataclass(frozen=True)
class Tick:
    """One moment: seconds since the epoch, what every GPU said, and CPU jiffies (busy, waiting for I/O, all)."""

    at: float
    readings: tuple[Reading, ...]
    jiffies: tuple[int, int, int] | None


class Sampler:
    """Samples in a thread of its own for the length of a ``with`` block, every `interval` seconds.

    `own` returns the process ids of the traced run, asked at each sample: they come and go.
    """

    def __init__(self, interval: float = 0.1, own: Callable[[], Iterable[int]] = tuple) -> None:
        self._interval, self._own = interval, own
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tflint-gpu sampler", daemon=True)
        self._ticks: list[Tick] = []
        self._gpus: Sequence[Gpu] = ()
        self._ours: set[int] = set()
        self._note = ""
        self._lost = False

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def samples(self, start: float | None = None, end: float | None = None) -> Samples:
        """Return the means of what was sampled from `start` to `end` (seconds since the epoch; all without them).

        Where the window is shorter than the interval, the nearest sample before it stands for it.
        """
        ticks = [tick for tick in self._ticks if (start or 0) <= tick.at <= (end or tick.at)]
        if not ticks and start is not None:
            ticks = [tick for tick in self._ticks if tick.at <= start][-1:]
        found = _summary(ticks, self._gpus, self._ours, self._note)
        return replace(found, note=_LOST) if self._lost else found

    def _run(self) -> None:
        with open_nvml() as nvml:
            if isinstance(nvml, str):
                self._note, sampled = nvml, None
            else:
                sampled, self._gpus = nvml, tuple(nvml.gpus())
                self._note = _limits(self._gpus)
            due = time.monotonic()
            while not self._stop.is_set():
                self._tick(sampled)
                due = max(due + self._interval, time.monotonic())
                self._stop.wait(due - time.monotonic())
            self._lost = sampled is not None and sampled.lost

    def _tick(self, nvml: Nvml | None) -> None:
        readings = tuple(nvml.read(gpu) for gpu in self._gpus) if nvml else ()
        self._ours.update(self._own())
        self._ticks.append(Tick(time.time(), readings, _jiffies()))


def _limits(gpus: Sequence[Gpu]) -> str:
    """Say in a sentence why counters may be missing, for a reader who finds none."""
    if not gpus:
        return "No GPU counters: the driver lists no GPU."
    if any(gpu.mig for gpu in gpus):
        return "A GPU is cut into MIG instances: NVML tells no utilization of those."
    return "No utilization: NVML does not tell it of this GPU."


def _summary(ticks: Sequence[Tick], gpus: Sequence[Gpu], ours: set[int], note: str) -> Samples:
    used = _used(ticks, gpus, ours)
    readings = [tick.readings[index] for tick in ticks for index in used if index < len(tick.readings)]
    cpu_util, io_wait = _cpu(ticks)
    memory = [gpus[index].memory_bytes for index in used]
    return Samples(
        count=sum(1 for tick in ticks if tick.readings),
        gpu_util=_mean(reading.util for reading in readings),
        memory_used_bytes=max((reading.memory_used or 0 for reading in readings), default=0) or None,
        memory_total_bytes=max((size for size in memory if size), default=None),
        power_w=_mean(reading.power_w for reading in readings),
        sm_clock_mhz=_mean(reading.sm_clock_mhz for reading in readings),
        throttled=_throttled(readings),
        other_processes=_others(readings, ours),
        cpu_util=cpu_util,
        note=note if not readings or not any(reading.util is not None for reading in readings) else "",
        io_wait=io_wait,
        pcie_in_bytes_s=_mean(reading.pcie_in for reading in readings),
        pcie_out_bytes_s=_mean(reading.pcie_out for reading in readings),
        power_limit_w=_mean(gpus[index].power_limit_w for index in used),
    )


def _used(ticks: Sequence[Tick], gpus: Sequence[Gpu], ours: set[int]) -> list[int]:
    """Return the GPUs that the run was on: by its process ids, else those that did anything, else all."""
    everything = range(len(gpus))
    readings = {index: [t.readings[index] for t in ticks if index < len(t.readings)] for index in everything}
    by_process = [i for i in everything if any(ours.intersection(r.pids or ()) for r in readings[i])]
    return by_process or [i for i in everything if any(r.util for r in readings[i])] or list(everything)


def _others(readings: Iterable[Reading], ours: set[int]) -> int | None:
    """Count foreign processes; None in a container, where NVML's ids are the host's and ours not among them."""
    seen = {pid for reading in readings for pid in reading.pids or ()}
    return len(seen - ours) if seen & ours else None


def _throttled(readings: Sequence[Reading]) -> tuple[str, ...]:
    told = [reading.throttle_bits for reading in readings if reading.throttle_bits is not None]
    often = Counter(bit for bits in told for bit in THROTTLES if bits & bit)
    return tuple(THROTTLES[bit] for bit in THROTTLES if told and often[bit] >= _OFTEN * len(told))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _cpu(ticks: Sequence[Tick]) -> tuple[float | None, float | None]:
    """Return the shares of CPU time that were busy and that waited for I/O between the first and the last tick."""
    counted = [tick.jiffies for tick in ticks if tick.jiffies]
    if len(counted) < 2:
        return None, None
    busy, waiting, total = (last - first for first, last in zip(counted[0], counted[-1], strict=True))
    return (busy / total, waiting / total) if total > 0 else (None, None)


def _jiffies() -> tuple[int, int, int] | None:
    """Return (busy, waiting for I/O, all) summed over the cores that this process may use; None off Linux."""
    try:
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        rows = [line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu")]
    except OSError:
        return None
    cores = [
        [int(field) for field in row[1:9]] for row in rows if row[0][3:].isdigit() and int(row[0][3:]) in allowed
    ]
    if not cores:
        return None
    idle, waiting, total = (sum(core[3] for core in cores), sum(core[4] for core in cores), sum(map(sum, cores)))
    return total - idle - waiting, waiting, total
