"""Figures as readers take them in."""

from __future__ import annotations

import pytest

from tflint_gpu.findings import Measure
from tflint_gpu.report.figures import digits, measure, milliseconds, percent, size


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (0.004, "under 1 %"), (0.01, "1 %"), (0.614, "61 %"), (1, "100 %")]
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.0, "3"), (0.01234, "0.0123"), (22.25, "22.2"), (1234.5, "1234"), (41, "41")],
)
def test_digits(value: float, text: str) -> None:
    assert digits(value) == text


def test_long_times_are_seconds() -> None:
    assert milliseconds(41.234) == "41.2 ms"
    assert milliseconds(12_345) == "12.3 s"


@pytest.mark.parametrize(
    ("count", "text"), [(10, "10 B"), (1536, "1.5 KiB"), (3 * 2**30, "3 GiB"), (5 * 2**50, "5120 TiB")]
)
def test_size(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Measure("input_wait_share", 0.84), "input wait 84 % of the step"),
        (Measure("python_time", 22.25, "ms"), "python time 22.2 ms"),
        (Measure("host_to_device_bytes", 2048.0, "B"), "host to device 2 KiB"),
        (Measure("kernel_median", 12.3, "µs"), "kernel median 12.3 µs"),
        (Measure("speedup", 2.42), "speedup 2.42"),
    ],
)
def test_measure(figure: Measure, text: str) -> None:
    assert measure(figure) == text
