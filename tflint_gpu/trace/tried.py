"""What a trace tried: changes and fixes, each against the program as it is."""

from __future__ import annotations

from dataclasses import dataclass

from tflint_gpu.trace.spots import Spot

#: Changes that leave the GPU the same work for a step, sooner.
SAME_WORK = frozenset(
    {
        *("cached-batch", "prefetch", "parallel-map", "parallel-read", "cache", "determinism-off"),
        *("workers-4", "callbacks-off", "steps-per-execution-8"),
    }
)


@dataclass(frozen=True)
class WhatIf:
    """One change against the baseline of the same run.

    `change` is ``cached-batch``, ``batch-x2``, ``xla``, ``steps-per-execution-8`` … Both times are per step of the
    original size (a doubled batch counts as two). `speedup` is baseline over changed, in samples per second,
    `low`/`high` bound it at 95 %, `spread` is half that interval over it. It is a gain only when `low` > 1.
    `spots` are the functions that were changed, where it is functions. Samples a second are None where the rows of
    a batch are not known. The peaks are of the GPU's memory as TensorFlow's allocator counts it, on a machine
    without one of the process' main memory, in bytes; None where the system does not tell them apart.
    """

    change: str
    step_ms: float
    baseline_ms: float
    speedup: float
    repeats: int
    spread: float
    low: float
    high: float
    note: str = ""
    spots: tuple[Spot, ...] = ()
    samples_per_second: float | None = None
    baseline_samples_per_second: float | None = None
    peak_bytes: int | None = None
    baseline_peak_bytes: int | None = None

    @property
    def gain(self) -> bool:
        """Whether the whole interval lies above no change."""
        return self.low > 1.0

    @property
    def factor(self) -> int:
        """How many times as large as the script's own its batches are; 1 where another thing was changed."""
        return int(self.change.removeprefix("batch-x")) if self.change.startswith("batch-x") else 1

    @property
    def basis(self) -> str:
        """How a report names what is known from this run: ``what-if: cached batch``."""
        return f"what-if: {self.change.replace('-', ' ')}{', one run' if self.repeats == 1 else ''}"

    @property
    def saved_share(self) -> float:
        """The share of step time that the change gives back, 0 where it is no gain."""
        return max(0.0, 1.0 - 1.0 / self.speedup) if self.gain else 0.0

    @property
    def most_saved(self) -> float:
        """The largest share of step time that the interval leaves the change to give back."""
        return max(0.0, 1.0 - 1.0 / self.high)


@dataclass(frozen=True)
class Losses:
    """The losses after the first steps, of the program as it is and of the fixed one; means over the runs of each.

    `difference` is the largest between the two over the loss, `noise` the largest between runs of one program;
    they agree where the difference is within the noise, or within what rounding may do.
    """

    steps: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    difference: float
    noise: float
    agree: bool


@dataclass(frozen=True)
class VerifiedFix:
    """The fixes of one rule, tried on a copy of the program: `result` has the times, None where `note` says why.

    Beside a result, `note` says what of the program the fixes did not reach.

    `spots` are the places that were fixed. `losses` is None where no step handed out a loss.
    """

    code: str
    name: str
    safety: str
    spots: tuple[Spot, ...]
    result: WhatIf | None = None
    losses: Losses | None = None
    note: str = ""

    @property
    def helpful(self) -> bool:
        """Whether the fixed program is faster, beyond the noise."""
        return self.result is not None and self.result.gain
