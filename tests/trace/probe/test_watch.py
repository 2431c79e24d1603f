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
