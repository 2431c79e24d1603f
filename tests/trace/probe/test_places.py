from __future__ import annotations

import _thread
import queue
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tflint_gpu.trace.probe.lines import Lines
from tflint_gpu.trace.probe.places import KERAS, OTHER, OURS, PROBE, PROJECT, TENSORFLOW, Places, same
from tflint_gpu.trace.probe.threads import watch_threads


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places([str(tmp_path)], str(tmp_path), {str(tmp_path / "n.ipynb#cell-3"): ("n.ipynb", 3)})


def test_files_are_told_apart(places: Places, tmp_path: Path) -> None:
    lib = "/usr/lib/python3/site-packages"
    kinds = {
        str(tmp_path / "train.py"): PROJECT,
        str(tmp_path / "n.ipynb#cell-3"): PROJECT,
        str(tmp_path / ".venv/lib/python3.11/site-packages/x.py"): OTHER,
        str(tmp_path / "keras/mine.py"): PROJECT,
        f"{lib}/tensorflow/python/eager/context.py": TENSORFLOW,
        f"{lib}/keras/src/models/model.py": KERAS,
        f"{lib}/tensorflow/python/keras/engine/training.py": KERAS,
        f"{lib}/tf_keras/src/engine/training.py": KERAS,
        f"{lib}/tqdm/std.py": OTHER,
        f"{PROBE}/clock.py": OURS,
        "<frozen importlib._bootstrap>": OTHER,
        types.__file__: OTHER,
    }
    assert {name: places.kind(name) for name in kinds} == kinds


def run(tmp_path: Path, name: str, source: str, **given: object) -> dict[str, object]:
    path = tmp_path / name
    path.write_text(source)
    names: dict[str, object] = dict(given)
    exec(compile(source, str(path), "exec"), names)
    return names


def test_the_caller_is_the_nearest_project_line(places: Places, tmp_path: Path) -> None:
    found: list[dict[str, object] | None] = []
    run(tmp_path, "train.py", "def work():\n    ask()\n\n\nwork()\n", ask=lambda: found.append(places.caller()))
    assert found == [{"path": "train.py", "line": 2, "cell": None, "function": "work"}]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def work():\n    ask()\n\n\nThread(target=work).start()\n", 2),
        ("thread = Thread(\n    target=ask)\n\nthread.start()\n", 1),
        ("class Own(Thread):\n    def run(self):\n        ask()\n\n\nOwn().start()\n", 3),
        ("Timer(0.01, ask).start()\n", 1),
        ("with Pool(1) as pool:\n    pool.submit(ask)\n", 2),
        ("start_new_thread(ask, ())\n", None),
    ],
    ids=[
        "a function of the user's",
        "another's",
        "a class",
        "a timer",
        "a pool",
        "no Thread",
    ],
)
def test_what_a_thread_runs_has_a_line(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, line: int | None
) -> None:
    monkeypatch.setattr(threading.Thread, "__init__", threading.Thread.__init__)
    watch_threads(places)
    found: queue.SimpleQueue[dict[str, object] | None] = queue.SimpleQueue()
    names = {"Thread": threading.Thread, "Timer": threading.Timer, "Pool": ThreadPoolExecutor}
    run(
        tmp_path,
        "train.py",
        source,
        ask=lambda: found.put(places.caller()),
        start_new_thread=_thread.start_new_thread,
        **names,
    )
    spot = found.get(timeout=10.0)
    assert (spot["line"] if spot else None) == line


def test_generated_code_stands_for_its_origin(places: Places, tmp_path: Path) -> None:
    generated = "/tmp/__autograph_generated_file1.py"
    places.generated[generated] = {1: (str(tmp_path / "train.py"), 7)}
    found: list[dict[str, object] | None] = []
    exec(compile("ask()\n", generated, "exec"), {"ask": lambda: found.append(places.caller())})
    assert found[0] is not None
    assert (found[0]["path"], found[0]["line"]) == ("train.py", 7)


def test_spots_compare_by_line() -> None:
    one = {"path": "a.py", "line": 1, "cell": None, "function": "f"}
    assert same(one, {**one, "function": "g"})
    assert not same(one, {**one, "line": 2})
    assert not same(None, None)


def test_lines_are_recorded_until_told_to_stop(places: Places, tmp_path: Path) -> None:
    lines = Lines(places)
    names: dict[str, object] = {}
    source = "def half(x):\n    if x:\n        return x / 2\n    return None\n\n\nhalf(4)\n"
    path = tmp_path / "train.py"
    code = compile(source, str(path), "exec")
    lines.start()
    try:
        exec(code, names)
    finally:
        lines.stop()
    later = compile("y = 1\n", str(tmp_path / "later.py"), "exec")
    exec(later, names)
    assert lines.report() == {"train.py": [1, 2, 3, 7]}


LOOPS = """
def once():
    return ask()


once()
for name in (1,):
    once()
found = [once() for _ in (1,)]
"""


def test_calls_in_loops_are_told_from_others(places: Places, tmp_path: Path) -> None:
    found: list[bool] = []
    run(tmp_path, "train.py", LOOPS, ask=lambda: found.append(places.in_loop()))
    assert found == [False, True, True]
