"""The turns of the arms of one run; nothing here starts TensorFlow."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tflint_gpu.trace.probe.trials import ENOUGH, ROUNDS, Trials


@pytest.fixture
def trials(tmp_path: Path) -> Any:
    config = SimpleNamespace(list_logical_devices=lambda _kind: [])
    job = {"doing": str(tmp_path / "doing.json"), "arms_report": str(tmp_path / "arms.json")}
    run = SimpleNamespace(target={}, job=job, tensorflow=SimpleNamespace(config=config), dataset_class=None)
    made = Trials(run, ["prefetch", "batch-x2", "batch-x4"], 60.0)
    track = SimpleNamespace(kind="dataset loop", steps=[])
    assert made.start(track, None)
    return made


def play(trials: Any, times: dict[str, list[float]], peaks: dict[str, int] | None = None) -> list[str]:
    """Run the blocks of `trials` with means from `times`, the last one for ever; return the changes in order."""
    order = []
    while (arm := trials.next_arm()) is not None and len(order) < 100:
        order.append(arm.change)
        given = times[arm.change]
        arm.means.append(given[min(len(arm.means), len(given) - 1)])
        if peaks:
            arm.peak = peaks[arm.change]
    return order


NOISY = [10.0, 14.0, 9.0, 13.0, 8.0, 15.0]


def test_what_is_clear_gets_no_more_turns(trials: Any) -> None:
    order = play(trials, {"": NOISY, "prefetch": NOISY, "batch-x2": [3.0, 3.1], "batch-x4": NOISY})
    assert order.count("batch-x2") == ENOUGH
    assert order.count("prefetch") == order.count("") == ROUNDS


def test_all_ends_when_all_is_clear(trials: Any) -> None:
    fast = [3.0, 3.01]
    order = play(trials, {"": [10.0, 10.1], "prefetch": fast, "batch-x2": fast, "batch-x4": fast})
    assert len(order) == 4 * ENOUGH


def test_no_arm_follows_the_same_one_in_every_turn(trials: Any) -> None:
    order = play(trials, dict.fromkeys(["", "prefetch", "batch-x2", "batch-x4"], NOISY))
    after_baseline = {after for before, after in pairwise(order) if before == ""}
    assert len(after_baseline) == 3


def test_a_batch_that_would_not_fit_is_not_tried(trials: Any) -> None:
    trials.room.known = [1000]
    peaks = {"": 300, "prefetch": 300, "batch-x2": 560}
    order = play(trials, dict.fromkeys(["", "prefetch", "batch-x2"], NOISY), peaks)
    assert "batch-x4" not in order
    assert "batch-x2" in order
    assert "memory" in trials.arms[3].problem


def test_a_batch_that_fits_is_tried(trials: Any) -> None:
    trials.room.known = [1000]
    peaks = {"": 300, "prefetch": 300, "batch-x2": 400, "batch-x4": 600}
    assert "batch-x4" in play(trials, dict.fromkeys(["", "prefetch", "batch-x2", "batch-x4"], NOISY), peaks)


def test_no_larger_batch_after_one_that_failed(trials: Any) -> None:
    trials.arms[2].error = {"type": "ResourceExhaustedError", "text": "OOM"}
    order = play(trials, dict.fromkeys(["", "prefetch"], NOISY))
    assert not {"batch-x2", "batch-x4"} & set(order)
    assert "batch-x2" in trials.arms[3].problem


def test_what_is_tried_is_told_with_the_time_left(trials: Any, tmp_path: Path) -> None:
    trials.next_arm()
    told = json.loads((tmp_path / "doing.json").read_text())
    assert (told["change"], told["run"]) == ("", 1)
    assert 50 < told["left"] <= 60
