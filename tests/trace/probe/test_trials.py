"""The turns of the arms of one run; nothing here starts TensorFlow."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tflint_gpu.trace.probe.arms import NOT_HERE
from tflint_gpu.trace.probe.clock import Clock, Limits
from tflint_gpu.trace.probe.eager_steps import EagerSteps
from tflint_gpu.trace.probe.keras_steps import KerasWatch
from tflint_gpu.trace.probe.trials import ENOUGH, MOST, ROUNDS, SKIP, BlockDone, Trials


def run_in(folder: Path) -> Any:
    config = SimpleNamespace(
        list_logical_devices=lambda _kind: [],
        functions_run_eagerly=lambda: False,
        run_functions_eagerly=lambda _value: None,
    )
    job = {"doing": str(folder / "doing.json"), "arms_report": str(folder / "arms.json")}
    run = SimpleNamespace(
        target={}, job=job, tensorflow=SimpleNamespace(config=config), dataset_class=None, settle=lambda: None
    )
    run.eager_steps = EagerSteps(run, False)
    return run


@pytest.fixture
def trials(tmp_path: Path) -> Any:
    made = Trials(run_in(tmp_path), ["prefetch", "batch-x2", "batch-x4"], 60.0)
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
            arm.note_peak(peaks[arm.change], own=True)
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


def test_twice_the_batch_is_not_tried_where_a_host_may_run_out_of_memory(trials: Any) -> None:
    trials.room.known = [1000]
    assert not {"batch-x2", "batch-x4"} & set(
        play(trials, dict.fromkeys(["", "prefetch"], NOISY), {"": 600, "prefetch": 600})
    )
    assert "memory" in trials.arms[2].problem


def test_a_batch_is_not_doubled_again_where_that_did_not_pay(tmp_path: Path) -> None:
    trials = Trials(run_in(tmp_path), ["batch-x2", "batch-x4", "batch-x8", "batch-x16"], 60.0)
    trials.start(SimpleNamespace(kind="dataset loop", steps=[]), None)
    order = play(trials, {"": NOISY, "batch-x2": [6.0], "batch-x4": [3.5], "batch-x8": [3.4], "batch-x16": [3.4]})
    # The others come first, in all their turns.
    assert "batch-x8" in order
    assert order[: order.index("batch-x8")].count("batch-x4") >= ENOUGH
    assert "batch-x16" not in order
    assert trials.arms[4].problem == NOT_HERE


def test_a_batch_that_fits_is_tried(trials: Any) -> None:
    trials.room.known = [1000]
    peaks = {"": 300, "prefetch": 300, "batch-x2": 400, "batch-x4": 600}
    assert "batch-x4" in play(trials, dict.fromkeys(["", "prefetch", "batch-x2", "batch-x4"], NOISY), peaks)


def test_no_larger_batch_after_one_that_failed(trials: Any) -> None:
    trials.arms[2].error = {"type": "ResourceExhaustedError", "text": "OOM"}
    order = play(trials, dict.fromkeys(["", "prefetch"], NOISY))
    assert not {"batch-x2", "batch-x4"} & set(order)
    assert "batch-x2" in trials.arms[3].problem


def test_precision_gets_a_share_of_the_budget_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu, left in ((True, 60.0), (False, 90.0)):
        trials = Trials(run_in(tmp_path), ["prefetch", "mixed-bfloat16"], 90.0)
        monkeypatch.setattr(type(trials.room), "on_gpu", gpu)
        trials.start(SimpleNamespace(kind="dataset loop", steps=[]), None)
        assert trials.budget == pytest.approx(left)


def test_what_is_tried_is_told_with_the_time_left(trials: Any, tmp_path: Path) -> None:
    trials.next_arm()
    told = json.loads((tmp_path / "doing.json").read_text())
    assert (told["change"], told["run"]) == ("", 1)
    assert 50 < told["left"] <= 60


class Input:
    """Stands for an iterator: what is left of it when the next one is made is still at work."""

    def __init__(self, alive: weakref.WeakSet[Input], seen: list[int]) -> None:
        seen.append(len(alive))
        alive.add(self)


class Training:
    """A Keras whose fit refers to itself while it runs, as the frames of a real one do."""

    def __init__(self, folder: Path) -> None:
        self.alive: weakref.WeakSet[Input] = weakref.WeakSet()
        self.seen: list[int] = []
        self.model = SimpleNamespace(
            jit_compile=False, steps_per_execution=1, train_function=None, run_eagerly=False
        )
        self.run = run_in(folder)
        self.run.clock = Clock(Limits(1, 1, 1, 1.0), lambda _phase: None, None, lambda _track: None)
        self.run.leave = lambda: (_ for _ in ()).throw(SystemExit)
        self.run.trials = Trials(self.run, ["xla"], 60.0)
        self.track = self.run.clock.track("fit", ("train.py", 1, None), None)

    def fit(self, model: Any, **_arguments: Any) -> None:
        drawn: list[Any] = [Input(self.alive, self.seen)]
        drawn.append(drawn)
        trials = self.run.trials
        if not trials.running:
            trials.start(self.track, {"x": None})
            raise BlockDone
        self.track.steps += [(1.0, "done")] * SKIP
        trials.block_full()
        self.track.steps += [(1.0, "done")] * MOST
        assert trials.block_full()
        raise BlockDone


@pytest.fixture
def collector_rests() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collector_rests")
def test_the_input_of_an_arm_has_ended_when_the_next_one_begins(tmp_path: Path) -> None:
    training = Training(tmp_path)
    watch = KerasWatch(training.run)
    run = training.run
    run.places = SimpleNamespace(in_loop=lambda: True)
    run.experiment = SimpleNamespace(fit_arguments=lambda _model, arguments: arguments)
    run.muted_callbacks = lambda arguments: arguments
    run.python_input = SimpleNamespace(watch_fit_input=lambda given, _track: given)
    run.extends = lambda _track: False
    spot = {"path": "train.py", "line": 1, "cell": None}

    def fit(self: Any, x: Any = None, epochs: int = 1) -> None:
        training.fit(self, x=x, epochs=epochs)

    with pytest.raises(SystemExit):
        watch._fit(fit, spot, training.model, (), {})
    assert len(training.seen) > 2 * ENOUGH
    assert set(training.seen) == {0}


@pytest.mark.usefixtures("collector_rests")
def test_the_loops_own_iterator_ends_when_the_arms_begin(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.keras = SimpleNamespace(depth=0)
    trials = Trials(run, ["cached-batch"], 60.0)
    assert trials.start(SimpleNamespace(kind="dataset loop", steps=[]), None)
    alive: weakref.WeakSet[Input] = weakref.WeakSet()
    own = SimpleNamespace(_iterator_resource=Input(alive, []), _tflint_gpu_source=[1, 2])
    assert trials.draw(own) == 1
    assert not alive
    assert trials.draw(own) == 2
