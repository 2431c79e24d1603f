"""The benchmark of the static half: what it counts as a survivor, how it judges a bound, that it runs."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

TRAINING = """\
import tensorflow as tf
import sizes

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), batch_size=sizes.ROWS)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.py").write_text(TRAINING)
    (folder / "sizes.py").write_text("ROWS = 32\n")
    (folder / "elsewhere.py").write_text("print(1)\n")
    (folder / "broken.py").write_text("import tensorflow as tf\nprint 1\n")
    return folder


def inside(*arguments: str | Path) -> str:
    command = [sys.executable, BENCHMARKS / "inside.py", *arguments]
    done = subprocess.run(
        list(map(str, command)), cwd=BENCHMARKS.parent, env={"PYTHONPATH": "."}, text=True, stdout=subprocess.PIPE
    )
    assert done.returncode == 0
    return done.stdout


def test_survivors_are_the_files_that_a_check_parses(tree: Path, tmp_path: Path) -> None:
    inside("survivors", tmp_path / "list.txt", tree)

    kept = (tmp_path / "list.txt").read_text().splitlines()
    assert sorted(Path(path).name for path in kept) == ["sizes.py", "train.py"]
    assert json.loads(inside("parse", tmp_path / "list.txt"))["cpu"] > 0


def test_a_check_is_timed(tree: Path) -> None:
    assert json.loads(inside("check", tree))["cpu"] > 0


def test_bounds_hold_on_their_own_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    bound = runpy.run_path(str(BENCHMARKS / "static.py"))["Bound"]

    assert bound("ratio", 2.9, 3).row() == "| ratio | at most 3.00 | 2.90 | yes |"
    assert bound("ratio", 3.1, 3).row().endswith("| **no** |")
    assert (
        bound("speed", 59_000, 60_000, above=True, form="{:,.0f}").row()
        == "| speed | at least 60,000 | 59,000 | **no** |"
    )


def test_the_whole_run_prints_both_tables(tree: Path) -> None:
    pytest.importorskip("flake8")
    command = [sys.executable, str(BENCHMARKS / "static.py"), "--rounds", "1", "--name", "a tree", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("a tree: 4 files with 10 lines of Python; 2 of them")
    assert done.stdout.count("| at most ") + done.stdout.count("| at least ") == 6


def test_a_made_profile_is_read_and_held_against_the_bounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    reader = runpy.run_path(str(BENCHMARKS / "profile_reader.py"))
    file = tmp_path / "made.xplane.pb"
    file.write_bytes(reader["made"](100_000))
    told = reader["report"](file)
    assert file.stat().st_size >= 100_000
    assert re.search(r"with \d+ steps", told)
    assert len(re.findall(r"\| (yes|\*\*no\*\*) \|$", told, re.MULTILINE)) == 2


def test_the_untraced_time_begins_where_the_interpreter_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    timing = runpy.run_path(str(BENCHMARKS / "report_time.py"))
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time\ntime.sleep(0.3)\nstart = (time.perf_counter(), time.time())\n"
        "notes = open(sys.argv[1], 'w')\nnotes.write(f'{start[0]} {start[1]}\\n')\n"
        f"for step in range({timing['STEPS']} + 30):\n"
        "    time.sleep(0.004)\n    notes.write(f'{time.perf_counter()} 0\\n')\n"
    )
    assert 0.3 + 0.004 * timing["STEPS"] < timing["plain"](script, tmp_path / "notes.txt")
