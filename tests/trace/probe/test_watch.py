"""The deadline of a run: what was measured in time is written down, however late that begins."""

from __future__ import annotations

import faulthandler
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tflint_gpu.trace.launcher import GRACE
from tflint_gpu.trace.probe.watch import REPORTING, DeadlineWatch


@pytest.mark.parametrize(("seconds", "left"), [(0.2, REPORTING), (600.0, 605.0)])
def test_a_report_that_is_begun_has_time_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, left: float
) -> None:
    armed: list[float] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda after, **_: armed.append(after))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", armed.clear)
    best: Any = SimpleNamespace(best=lambda: "a loop")
    run = SimpleNamespace(
        clock=best,
        imported_at=None,
        thread=None,
        places=SimpleNamespace(spot_of=lambda *_: None),
        finish=lambda *_, **__: None,
    )
    watch = DeadlineWatch(run, seconds, str(tmp_path / "stacks.txt"))
    time.sleep(0.25 if seconds < 1 else 0.0)

    watch.reporting()
    assert armed == [pytest.approx(left, abs=1.0)]
    watch.end = 0.0  # ends the thread
    watch.thread.join(5)
    watch.dump.close()


def test_the_parent_waits_until_the_report_is_written() -> None:
    assert REPORTING < GRACE


@pytest.mark.parametrize(
    ("third", "imported_at", "expected"),
    [
        (None, None, (1300.0, 3.0, False)),
        (None, 1010.0, (1300.0, 3.0, False)),
        (4.0, None, (1600.0, 3.0, True)),
        (4.0, 1010.0, (1014.0, 3.0, True)),
        (1.5, 1010.0, (1011.5, 1.5, True)),
    ],
    ids=[
        "half the deadline",
        "TensorFlow is there",
        "TensorFlow is not there yet",
        "its middle third",
        "a short one",
    ],
)
def test_when_a_program_without_steps_is_profiled(
    third: float | None, imported_at: float | None, expected: tuple[float, float, bool]
) -> None:
    watch = DeadlineWatch.__new__(DeadlineWatch)
    watch.began, watch.seconds, watch.end, watch.third = 1000.0, 600.0, 1600.0, third
    watch.run = SimpleNamespace(imported_at=imported_at)
    assert watch._by_time() == expected


@pytest.mark.parametrize(
    ("functions", "ops", "steps", "profiled"),
    [(1, 1, None, 0.5), (0, 1, None, 0.8), (0, 0, None, None), (1, 1, "a loop", None)],
)
def test_a_program_that_goes_on_without_a_step_is_profiled_while_there_is_time(
    tmp_path: Path, functions: int, ops: int, steps: str | None, profiled: float | None
) -> None:
    counts = {False: 0, True: 0}

    def work(eager: bool = False) -> int:
        counts[eager] += ops if eager else functions
        return counts[eager]

    seconds, began = 2.0, time.monotonic()
    at: list[float] = []
    ended: list[str] = []
    run = SimpleNamespace(
        clock=SimpleNamespace(best=lambda: steps),
        imported_at=None,
        thread=None,
        places=SimpleNamespace(spot_of=lambda *_: None),
        finish=lambda status, **_: ended.append(status),
        work=work,
        profile_by_time=lambda _: at.append((time.monotonic() - began) / seconds),
    )
    watch = DeadlineWatch(run, seconds, str(tmp_path / "stacks.txt"))
    watch.thread.join(30)
    watch.cancel()
    watch.dump.close()
    # The run would have ended with its profile, before its deadline.
    assert ended == ["deadline"]
    if profiled is None:
        assert at == []
    else:
        assert profiled <= at[0] < 1.0
