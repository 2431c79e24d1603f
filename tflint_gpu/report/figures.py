"""Figures as readers take them in: shares as per cent, times and sizes with a unit and three digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.findings import Measure

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import WhatIf

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")

#: Steps from which on quartiles are told, and so a spread.
QUARTILES = 4


def percent(share: float) -> str:
    """Return a share (0..1) as ``61 %``; one that is there but does not show as ``under 1 %``."""
    return "under 1 %" if 0 < share < 0.01 else f"{share * 100:.0f} %"


def milliseconds(value: float) -> str:
    """Return a time given in ms with its unit and three digits."""
    return f"{digits(value / 1000)} s" if value >= 10_000 else f"{digits(value)} ms"


def scatter(steps: int, spread: float) -> str:
    """Return ``, spread 8 %`` for a sample of so many steps; "" below `QUARTILES`."""
    return f", spread {percent(spread)}" if steps >= QUARTILES else ""


def size(count: float) -> str:
    """Return a number of bytes with a binary unit."""
    for unit in _SIZES[:-1]:
        if count < 1024:
            return f"{digits(count)} {unit}"
        count /= 1024
    return f"{digits(count)} {_SIZES[-1]}"


def samples_a_second(result: WhatIf) -> str:
    """Return what a change does to the samples a second, ``729 → 4010``; "" where rows are not known."""
    if result.samples_per_second is None or result.baseline_samples_per_second is None:
        return ""
    return f"{digits(result.baseline_samples_per_second)} → {digits(result.samples_per_second)}"


def digits(value: float) -> str:
    """Return a number with three significant digits, and no exponent below a million."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def measure(figure: Measure) -> str:
    """Return one figure of the evidence in words: ``input wait 84 % of the step``."""
    name = figure.metric.replace("_", " ")
    if figure.unit == "1" and name.endswith(" share"):
        return f"{name.removesuffix(' share')} {percent(figure.value)} of the step"
    if figure.unit == "ms":
        return f"{name.removesuffix(' ms')} {milliseconds(figure.value)}"
    if figure.unit == "B":
        return f"{name.removesuffix(' bytes')} {size(figure.value)}"
    return f"{name} {digits(figure.value)}" + ("" if figure.unit == "1" else f" {figure.unit}")
