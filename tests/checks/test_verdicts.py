from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.verdicts import (
    by_experiment,
    place_of,
    share_of_step,
    weigh,
    with_larger_batch,
    without_overhead,
)
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Spot, WhatIf


@pytest.mark.parametrize(("share", "verdict"), [(0.031, Verdict.CONFIRMED), (0.029, Verdict.MINOR)])
def test_three_percent_of_the_step_is_the_line(share: float, verdict: Verdict) -> None:
    judged = weigh(share, "share", "trace: something")

    assert judged.verdict is verdict
    assert (judged.impact is not None) == (verdict is Verdict.CONFIRMED)


@pytest.mark.parametrize(
    ("speedup", "low", "high", "verdict"),
    [
        (2.0, 1.8, 2.2, Verdict.CONFIRMED),
        (1.02, 1.01, 1.03, Verdict.MINOR),
        (1.0, 0.98, 1.02, Verdict.REFUTED),
        (0.8, 0.7, 0.9, Verdict.REFUTED),
        (1.2, 0.7, 1.9, None),
    ],
    ids=["gain", "hardly any", "none", "loss", "noise"],
)
def test_an_experiment_speaks_only_where_its_interval_does(
    speedup: float, low: float, high: float, verdict: Verdict | None
) -> None:
    judged = by_experiment(WhatIf("xla", 10.0 / speedup, 10.0, speedup, 3, 0.1, low, high))

    assert (judged.verdict if judged else None) is verdict
    if verdict is Verdict.CONFIRMED:
        assert judged is not None and judged.impact is not None
        assert judged.impact.basis == "what-if: xla"


def test_what_was_not_run_proves_nothing() -> None:
    assert by_experiment(None) is None


@pytest.mark.parametrize(
    ("lows", "most", "chosen"),
    [
        ({"batch-x2": 1.4, "batch-x4": 2.1, "batch-x8": 1.9}, 16, "batch-x4"),
        ({"batch-x2": 1.4, "batch-x4": 2.1, "batch-x8": 1.9}, 3.5, "batch-x2"),
        ({"batch-x2": 1.1, "batch-x4": 0.9}, 16, "batch-x2"),
        ({"batch-x2": 0.97, "batch-x4": 0.7}, 16, "batch-x4"),
        ({"batch-x8": 2.0}, 4, None),
        ({"xla": 2.0}, 16, None),
    ],
    ids=["the best gain", "not above what is asked", "a gain, though smaller", "no gain", "too large", "no batch"],
)
def test_the_larger_batch_that_tells_most(lows: dict[str, float], most: float, chosen: str | None) -> None:
    runs = tuple(WhatIf(change, 10.0, 10.0, low + 0.2, 3, 0.1, low, low + 0.4) for change, low in lows.items())
    found = with_larger_batch(evidence_of(what_if=runs), most)
    assert (found.change if found else None) == chosen


def test_share_of_step_needs_a_step_and_is_one_at_most() -> None:
    assert share_of_step(2.0, evidence_of(step_ms=10.0)) == pytest.approx(0.2)
    assert share_of_step(20.0, evidence_of(step_ms=10.0)) == 1.0
    assert share_of_step(None, evidence_of()) is None
    assert share_of_step(2.0, replace(evidence_of(), window=None)) is None


def test_what_profiling_added_is_taken_off_the_host() -> None:
    evidence = evidence_of(step_ms=10.0, gpu=True, buckets={"device_compute": 6.0, "launch": 4.0})
    assert evidence.window is not None
    slowed = replace(evidence, window=replace(evidence.window, step_ms=8.0))

    assert without_overhead(0.4, evidence) == pytest.approx(0.4)
    assert without_overhead(0.4, slowed) == pytest.approx(0.25)


def test_place_of_the_step_is_its_line_else_the_script() -> None:
    evidence = evidence_of()
    assert evidence.window is not None
    spotted = replace(evidence, window=replace(evidence.window, spot=Spot("loop.py", 7)))

    assert (place_of(spotted).path, place_of(spotted).line) == ("loop.py", 7)
    assert (place_of(evidence).path, place_of(evidence).line) == ("train.py", 1)
    assert place_of(replace(evidence, command=("import", "logs"))).path == "logs"
