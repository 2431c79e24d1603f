from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import pytest

from tflint_gpu.trace.probe import clock as module
from tflint_gpu.trace.probe.clock import DONE, PLAIN, PROFILE, WARMUP, Clock, Limits, Track


class Marker:
    """Notes which steps were labelled."""

    def __init__(self, log: list[str], number: int) -> None:
        self.log = log
        self.number = number

    def __enter__(self) -> Marker:
        self.log.append(f"+{self.number}")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.log.append(f"-{self.number}")

    def cancel(self) -> None:
        self.log.append(f"no {self.number}")


class Time:
    """A clock that moves by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    made = Time()
    monkeypatch.setattr(module, "perf_counter", made)
    yield made


def make(log: list[str], warmup: int = 2, plain: int = 3, window: int = 2, seconds: float = 100.0) -> Clock:
    limits = Limits(warmup, plain, window, seconds)
    return Clock(limits, log.append, lambda number: Marker(log, number), lambda track: None)


def ticks(clock: Clock, track: Track, time: Time, count: int, length: float = 0.1) -> None:
    for _ in range(count):
        clock.tick(track)
        time.now += length


def test_phases_follow_one_another(time: Time) -> None:
    log: list[str] = []
    clock = make(log)
    track = clock.track("step function", 1, None)
    ticks(clock, track, time, 8)
    assert log == [PLAIN, PROFILE, "+0", "-0", "+1", "-1", DONE]
    assert track.times(PLAIN) == pytest.approx([100.0] * 3)
    assert len(track.times(WARMUP)) == 2
    assert len(track.times(PROFILE)) == 2


def test_slow_steps_move_on_by_time(time: Time) -> None:
    log: list[str] = []
    clock = make(log, warmup=10, plain=20, window=20, seconds=5.0)
    track = clock.track("step function", 1, None)
    ticks(clock, track, time, 8, length=6.0)
    assert log == [PLAIN, PROFILE, "+0", "-0", DONE]
    assert len(track.times(PLAIN)) == 2


def test_a_loop_that_does_not_train_is_never_the_driver(time: Time) -> None:
    clock = make([])
    shown = clock.track("dataset loop", 1, None)
    ticks(clock, shown, time, 50)
    assert clock.driver is None
    assert clock.best() is None
    clock.active_loops.append(shown)
    clock.training_seen()
    ticks(clock, shown, time, 2)
    assert clock.driver is shown


def test_the_surest_kind_drives(time: Time) -> None:
    clock = make([], warmup=20)
    loop = clock.track("dataset loop", 1, None)
    call = clock.track("train_on_batch", 2, None)
    loop.trained = True
    for _ in range(5):
        clock.tick(loop)
        time.now += 0.01
        clock.tick(call)
        time.now += 0.1
    assert clock.driver is call


def test_a_loop_that_is_over_makes_room(time: Time) -> None:
    clock = make([], warmup=20)
    first = clock.track("dataset loop", 1, None)
    first.trained = True
    ticks(clock, first, time, 6)
    clock.drop(first)
    later = clock.track("step function", 2, None)
    ticks(clock, later, time, 5)
    assert clock.driver is later


def test_work_that_the_device_still_has_belongs_to_the_steps(time: Time) -> None:
    clock = make([])
    track = clock.track("step function", 1, None)
    ticks(clock, track, time, 5)

    def settle() -> None:
        time.now += 0.6

    clock.settle = settle
    ticks(clock, track, time, 3)
    assert track.times(PLAIN) == pytest.approx([300.0] * 3)
    assert track.times(WARMUP) == pytest.approx([100.0] * 2)


def test_a_draw_that_finds_the_end_is_no_step(time: Time) -> None:
    log: list[str] = []
    clock = make(log)
    track = clock.track("dataset loop", 1, None)
    track.trained = True
    ticks(clock, track, time, 6)
    clock.drop(track)
    assert log == [PLAIN, PROFILE, "+0", "no 0", "-0"]
    assert track.times(PROFILE) == []


def test_an_execution_of_several_steps_counts_them_all(time: Time) -> None:
    clock = make([])
    track = clock.track("fit", 1, None)
    clock.open(track)
    time.now += 0.8
    clock.close(track, count=8)
    assert track.times(WARMUP) == pytest.approx([100.0] * 8)


@pytest.mark.parametrize("total", [13, 16, 20, 32, 45])
def test_known_short_runs_get_shorter_phases(total: int) -> None:
    limits = Limits(10, 20, 20, 5.0)
    limits.shorten(total)
    assert limits.warmup + limits.plain + limits.window < total
    assert min(limits.plain, limits.window) >= 5


@pytest.mark.parametrize("total", [45, 60, 80])
def test_an_epoch_that_has_to_pass_is_not_shortened(total: int) -> None:
    limits = Limits(32, 100, 20, 5.0)
    limits.shorten(total, past=32)
    assert limits.warmup == 32
    assert limits.warmup + limits.plain + limits.window < total
    assert min(limits.plain, limits.window) >= 5


def test_a_run_that_ends_with_that_epoch_keeps_its_phases() -> None:
    limits = Limits(32, 100, 20, 5.0)
    limits.shorten(40, past=32)
    assert (limits.warmup, limits.plain, limits.window) == (32, 100, 20)


@pytest.mark.parametrize("total", [1, 12, 51, 100000])
def test_other_runs_keep_theirs(total: int) -> None:
    limits = Limits(10, 20, 20, 5.0)
    limits.shorten(total)
    assert (limits.warmup, limits.plain, limits.window) == (10, 20, 20)


def test_a_single_call_is_a_step_of_its_own(time: Time) -> None:
    clock = make([])
    track = clock.track("step function", 1, None)
    clock.tick(track)
    time.now += 3.0
    track.last_return = time.now
    assert clock.best() is track
    assert track.times(WARMUP) == pytest.approx([3000.0])


def test_a_pause_in_the_profile_is_labelled_as_no_step(time: Time) -> None:
    log: list[str] = []
    clock = make(log)
    track = clock.track("step function", 1, None)
    with clock.pause():
        pass
    assert log == []
    ticks(clock, track, time, 6)
    clock.close(track)
    assert clock.phase == PROFILE
    log.clear()
    with clock.pause():
        log.append("inside")
    assert [word.split()[0].rstrip("0123456789") for word in log] == ["+", "no", "inside", "-"]
