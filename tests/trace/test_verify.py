"""Fixes on trial: turns, figures and losses with made-up runs, and once a real program in two modules."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trace.test_whatif import SPOT, report
from tflint_gpu.report.traced import outcome
from tflint_gpu.trace import verify as verifying
from tflint_gpu.trace.evidence import Spot, VerifiedFix
from tflint_gpu.trace.launcher import Outcome
from tflint_gpu.trace.script import Script
from tflint_gpu.trace.session import TraceJob, Tracer
from tflint_gpu.trace.verify import Trial, compare_losses, moved_line, past_first_epoch, verify
from tflint_gpu.trace.whatif import WILD

BEFORE = b"import os\nds = make()\nmodel.fit(ds)\n"
AFTER = b"import os\nimport tensorflow as tf\nds = make().prefetch(2)\nmodel.fit(ds)\n"
PLACES = (Spot("train.py", 2),)
TRIAL = Trial("TFG101", "missing-prefetch", "safe", PLACES, {"train.py": BEFORE}, {"train.py": AFTER})

Tried = Callable[..., tuple[VerifiedFix, list[dict[str, Any]]]]


def told(times: list[float], losses: list[float] | None = None, **more: Any) -> dict[str, Any]:
    """Return the report of a run with such steps and the losses of its first steps."""
    places = [{"kind": "fit", "spot": SPOT, "values": [[step, loss] for step, loss in enumerate(losses or (), 1)]}]
    return report(times, losses=places if losses else [], **more)


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tried:
    """Return a function (reports as it is, reports with the fix) -> what is said of the fix, and all launches."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_bytes(BEFORE)
    monkeypatch.setattr(verifying, "find_python", lambda name: name)

    def run(
        plain: Iterator[dict[str, Any] | None], fixed: Iterator[dict[str, Any] | None], budget: float = 90.0
    ) -> tuple[VerifiedFix, list[dict[str, Any]]]:
        launches: list[dict[str, Any]] = []

        def launch(self: Tracer, **settings: Any) -> Outcome:
            served = {path: Path(file).read_bytes() for path, file in settings.get("replaced", {}).items()}
            launches.append({**settings, "replaced": served})
            return Outcome(next(fixed if served else plain), ("", "Aborted: out of luck"), 0, "")

        monkeypatch.setattr(Tracer, "launch", launch)
        here = Path.cwd()
        job = TraceJob(Script("script", "train.py", here / "train.py", here, (here,)), budget=budget)
        (found,) = verify(job, [TRIAL], lambda _text: None)
        return found, launches

    return run


def steady(ms: float, losses: list[float] | None = None) -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        number += 1
        yield told([ms * (1 + 0.002 * (number % 3))] * 20, losses)


def test_a_gain_is_told_with_its_interval(tried: Tried) -> None:
    found, launches = tried(steady(40.0, [1.0, 0.5]), steady(10.0, [1.0, 0.5]))
    assert found.helpful
    assert found.result.speedup == pytest.approx(4.0, rel=0.01)
    assert found.result.low > 3.9
    assert found.result.repeats == verifying.LEAST
    assert found.losses.agree
    assert found.losses.steps == (1, 2)
    # The versions take turns, and both draw the same numbers.
    assert [bool(each["replaced"]) for each in launches] == [False, True, False, True, False, True]
    assert {each["seed"] for each in launches} == {verifying.SEED}


def test_the_child_is_served_the_fixed_text_and_the_file_stays(tried: Tried, tmp_path: Path) -> None:
    _, launches = tried(steady(40.0), steady(10.0))
    served = [each["replaced"] for each in launches if each["replaced"]]
    assert served == [{str(tmp_path / "train.py"): AFTER}] * 3
    assert (tmp_path / "train.py").read_bytes() == BEFORE


def test_processes_that_saw_the_old_text_are_told(tried: Tried) -> None:
    found, _ = tried(steady(40.0), ({**one, "bypassed": True} for one in steady(10.0)))
    assert found.helpful
    assert found.note == verifying.BYPASSED
    assert outcome(found).endswith(f"; {verifying.BYPASSED}")
    assert tried(steady(40.0), steady(10.0))[0].note == ""


def test_no_gain_beyond_the_noise_is_not_helpful(tried: Tried) -> None:
    noisy = iter([told([40.0 + 3 * (number % 3)] * 20) for number in range(20)])
    found, launches = tried(noisy, iter([told([40.0 + 3 * ((number + 1) % 3)] * 20) for number in range(20)]))
    assert not found.helpful
    assert found.result.low < 1.0 < found.result.high
    assert len(launches) == 2 * verifying.MOST
    assert found.losses is None


def test_a_clear_gain_of_unknown_size_is_one(tried: Tried) -> None:
    plain, fixed = iter([told([200.0] * 20), told([300.0] * 20)]), iter([told([8.0] * 20), told([17.0] * 20)])
    found, _ = tried(plain, fixed, budget=0.0)
    assert found.result is not None, found.note
    assert found.result.spread > WILD
    assert found.result.low > 1.0
    assert found.helpful


def test_runs_that_scatter_around_no_gain_tell_nothing(tried: Tried) -> None:
    plain, fixed = iter([told([10.0] * 20), told([300.0] * 20)]), iter([told([8.0] * 20), told([200.0] * 20)])
    found, _ = tried(plain, fixed, budget=0.0)
    assert (found.result, found.helpful) == (None, False)
    assert "too unsteady to tell" in found.note


def test_a_fix_that_breaks_the_program_is_told(tried: Tried) -> None:
    crashed = {**told([]), "status": "crashed", "error": {"type": "ValueError", "text": "no shape"}}
    found, _ = tried(steady(40.0), iter([crashed]))
    assert (found.result, found.note) == (None, "the fixed program does not run: fails with ValueError: no shape")
    found, _ = tried(steady(40.0), iter([None]))
    assert found.note == "the fixed program does not run: the run failed (Aborted: out of luck)"


def test_without_a_budget_two_runs_are_made_all_the_same(tried: Tried) -> None:
    found, launches = tried(steady(40.0), steady(10.0), budget=0.0)
    assert [bool(each["replaced"]) for each in launches] == [False, True, False, True]
    assert found.result is not None
    assert found.result.repeats == 2
    assert found.helpful


def test_a_larger_batch_counts_by_its_rows(tried: Tried) -> None:
    doubled = iter([told([60.0] * 20, batch_size=64) for _ in range(9)])
    found, _ = tried(iter([told([40.0 + number / 10] * 20) for number in range(9)]), doubled)
    assert found.result.speedup == pytest.approx(4 / 3, rel=0.02)


def test_a_short_program_is_prolonged_where_its_loop_now_stands(tried: Tried) -> None:
    line = {**SPOT, "line": 3}

    def short(reports: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        yield told([40.0] * 2)
        yield from reports

    plain = short(steady(40.0))
    first = next(plain)
    first["track"]["spot"] = line
    found, launches = tried(iter([first, *(next(plain) for _ in range(9))]), steady(10.0))
    assert found.helpful
    targets = [each["target"]["spot"]["line"] for each in launches[1:]]
    assert targets == [3, 4, 3, 4, 3, 4]
    assert all(each["extend"] for each in launches[1:])


@pytest.mark.parametrize(
    ("before", "after", "agree"),
    [
        ([[1.0, 0.5]], [[1.0, 0.5004]], True),
        ([[1.0, 0.5]], [[1.0, 0.6]], False),
        ([[1.0, 0.5], [1.0, 0.7]], [[1.0, 0.65]], True),
        ([[1.0, math.nan]], [[1.0, math.nan]], True),
        ([[1.0, 0.5]], [[1.0, math.nan]], False),
    ],
    ids=["rounding", "another result", "within what runs differ by", "neither is a number", "one is no number"],
)
def test_losses_agree_within_rounding_and_noise(
    before: list[list[float]], after: list[list[float]], agree: bool
) -> None:
    found = compare_losses(*([told([], losses)["losses"] for losses in runs] for runs in (before, after)))
    assert found is not None
    assert found.agree is agree


def test_losses_of_several_steps_in_one_call_are_held_against_the_same_step() -> None:
    one = told([], [4.0, 3.0, 2.0, 1.0])["losses"]
    several = [{"kind": "fit", "spot": SPOT, "values": [[4, 1.0], [8, 0.5]]}]
    found = compare_losses([one], [several])
    assert found is not None
    assert (found.steps, found.agree) == ((4,), True)
    assert compare_losses([one], [[]]) is None


def test_the_first_epoch_is_let_pass_where_it_is_short() -> None:
    here = Path.cwd()
    job = TraceJob(Script("script", "train.py", here / "train.py", here, (here,)), warmup=10)
    later = past_first_epoch(job, 32.0)
    assert later is not None
    assert later.warmup == 34
    assert past_first_epoch(job, 4.0) == job
    assert past_first_epoch(job, None) is None
    assert past_first_epoch(job, 5000.0) is None


@pytest.mark.parametrize(("line", "moved"), [(1, 1), (2, 3), (3, 4), (9, 9)])
def test_a_line_is_found_again_in_the_fixed_text(line: int, moved: int) -> None:
    assert moved_line(BEFORE, AFTER, line) == moved


DATA = """\
import time
import numpy as np
import tensorflow as tf

def slow(x):
    time.sleep(0.004)
    return np.float32(x)

def load():
    ds = tf.data.Dataset.range(100000)
    ds = ds.map(lambda i: tf.ensure_shape(tf.numpy_function(slow, [i], tf.float32), []))
    ds = ds.map(lambda x: (tf.fill([4], x), x)).batch(8)
    return ds
"""
TRAIN = """\
import tensorflow as tf
from data import load

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(load(), steps_per_epoch=200, epochs=2, verbose=0)
"""


@pytest.mark.trace
def test_a_fix_in_an_imported_module_is_measured_and_the_files_stay(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    (tmp_path / "data.py").write_text(DATA)
    (tmp_path / "train.py").write_text(TRAIN)
    # A compiled module that is up to date must not be taken for the fixed one.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "tflint_gpu", "trace", "--isolated", "--what-if", "none", "--steps", "5"]
    root = str(Path(verifying.__file__).parents[2])
    done = subprocess.run(
        [
            *command,
            "--budget",
            "200",
            "--verify-fix=TFG102",
            "--output-format",
            "json",
            "train.py",
            "--verify-fix",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=500,
    )
    told = json.loads(done.stdout)
    (fix,) = told["trace"]["verified_fixes"]
    assert (fix["code"], fix["safety"], fix["places"]) == (
        "TFG102",
        "unsafe",
        [{"path": "data.py", "cell": None, "line": 11}],
    ), done.stderr
    # Eight elements of 4 ms one after the other, or at once.
    assert fix["helpful"], fix
    assert fix["result"]["speedup"] > 1.3
    assert fix["losses"]["agree"], fix["losses"]
    assert (tmp_path / "data.py").read_text() == DATA
    assert {path.name for path in tmp_path.iterdir()} == {".tflint-gpu", "__pycache__", "data.py", "train.py"}
