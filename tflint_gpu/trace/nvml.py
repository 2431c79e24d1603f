"""NVML through ``pynvml``: opened once, every question answered with a value or None, never with an exception."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

#: Bits of the reasons for lowered clocks that cost speed; idle clocks and chosen application clocks do not.
THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver knows it; `handle` is NVML's. `mig` says that it is cut into instances."""

    index: int
    name: str
    handle: Any
    compute_capability: str | None = None
    memory_bytes: int | None = None
    mig: bool = False
    power_limit_w: float | None = None


@dataclass(frozen=True)
class Reading:
    """One sample of one GPU: shares 0..1, bytes, W, MHz, bytes a second; None for what it does not tell."""

    util: float | None
    memory_used: int | None
    power_w: float | None
    sm_clock_mhz: float | None
    throttle_bits: int | None
    pcie_in: float | None
    pcie_out: float | None
    pids: tuple[int, ...] | None


class Nvml:
    """An open NVML; `driver` is its version."""

    def __init__(self, library: Any) -> None:
        self._nvml = library
        self._refusals: set[int] = set()
        self.driver = _text(self._ask(lambda: library.nvmlSystemGetDriverVersion()) or "unknown")

    def gpus(self) -> list[Gpu]:
        """Return the GPUs of the machine, whatever ``CUDA_VISIBLE_DEVICES`` says."""
        count = self._ask(self._nvml.nvmlDeviceGetCount) or 0
        found = (self._gpu(index) for index in range(count))
        return [gpu for gpu in found if gpu]

    def _gpu(self, index: int) -> Gpu | None:
        nvml = self._nvml
        handle = self._ask(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        if handle is None:
            return None
        capability = self._ask(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        mig = self._ask(lambda: nvml.nvmlDeviceGetMigMode(handle))
        limit = self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        return Gpu(
            index,
            _text(self._ask(lambda: nvml.nvmlDeviceGetName(handle)) or "NVIDIA GPU"),
            handle,
            f"{capability[0]}.{capability[1]}" if capability else None,
            int(memory.total) if memory else None,
            bool(mig and mig[0]),
            limit / 1000 if limit else None,
        )

    def read(self, gpu: Gpu) -> Reading:
        """Sample `gpu` once; about a millisecond, and some 40 more for the two PCIe counters."""
        nvml, handle = self._nvml, gpu.handle
        util = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        power = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        clock = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        processes = self._ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        incoming = self._ask(lambda: nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES))
        outgoing = self._ask(lambda: nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES))
        return Reading(
            util=None if util is None else util.gpu / 100,
            memory_used=None if memory is None else int(memory.used),
            power_w=None if power is None else power / 1000,
            sm_clock_mhz=None if clock is None else float(clock),
            throttle_bits=self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
            pcie_in=None if incoming is None else incoming * 1000.0,
            pcie_out=None if outgoing is None else outgoing * 1000.0,
            pids=None if processes is None else tuple(int(process.pid) for process in processes),
        )

    def _ask(self, question: Callable[[], _Answer]) -> _Answer | None:
        try:
            return question()
        except self._nvml.NVMLError as problem:
            self._refusals.add(problem.value)
            return None

    @property
    def lost(self) -> bool:
        """Whether a GPU stopped answering: it fell off the bus, or needs a reset."""
        gone = (self._nvml.NVML_ERROR_GPU_IS_LOST, getattr(self._nvml, "NVML_ERROR_RESET_REQUIRED", None))
        return any(code in self._refusals for code in gone)


@contextlib.contextmanager
def open_nvml() -> Iterator[Nvml | str]:
    """Open NVML for a ``with`` block; where that fails the block gets a sentence that says why."""
    try:
        import pynvml
    except ImportError:
        yield "No GPU counters: pynvml is not installed (pip install nvidia-ml-py)."
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as problem:
        yield _why(pynvml, problem)
        return
    try:
        yield Nvml(pynvml)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _why(pynvml: Any, problem: Any) -> str:
    reasons = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver is installed on this machine",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded",
        pynvml.NVML_ERROR_NO_PERMISSION: "this user may not talk to the NVIDIA driver",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver and library versions differ: reboot after the update",
    }
    return f"No GPU counters: {reasons.get(problem.value, str(problem))}."


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
