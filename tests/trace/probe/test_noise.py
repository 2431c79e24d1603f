from __future__ import annotations

import math
import random

import pytest

from tflint_gpu.trace.probe.noise import is_settled, logarithms


def test_the_interval_is_students() -> None:
    # Two arms of three: differences of the logarithms are exact, the variances 1e-4 and 4e-4.
    base = [math.exp(value) for value in (0.99, 1.0, 1.01)]
    new = [math.exp(value) for value in (0.48, 0.5, 0.52)]
    difference, half = logarithms(base, new)
    assert difference == pytest.approx(0.5)
    assert half == pytest.approx(2.776 * math.sqrt((1e-4 + 4e-4) / 2 * (2 / 3)))


def test_settled_needs_two_runs_of_both() -> None:
    assert not is_settled([40.0], [20.0, 20.1])
    assert is_settled([40.0, 40.2], [20.0, 20.1])
    assert is_settled([40.0, 40.1], [40.05, 40.06])
    assert not is_settled([40.0, 50.0], [41.0, 47.0])


def test_a_small_gain_is_not_settled_early() -> None:
    base, new = [100.0, 100.1, 99.9], [96.0, 95.0, 97.0]
    difference, half = logarithms(base, new)
    assert difference - half > 0
    assert half < 0.03 or not is_settled(base, new)
    assert not is_settled([100.0, 104.0, 96.0], [89.0, 92.0, 86.0])


def test_chance_is_seldom_taken_for_a_gain() -> None:
    chance = random.Random(3)
    wrong = 0
    for _ in range(400):
        arms: list[list[float]] = [[], []]
        for turn in range(6):
            for arm in arms:
                arm.append(40.0 * math.exp(chance.gauss(0, 0.1)))
            if turn >= 2 and is_settled(*arms):
                break
        difference, half = logarithms(*arms)
        wrong += difference - half > 0
    assert wrong / 400 < 0.05
