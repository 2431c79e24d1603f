"""Children that misbehave, without TensorFlow in them: what is said, and that nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tflint_gpu.errors import UserError
from tflint_gpu.trace.launcher import Outcome, Terminated, _wait, find_python, launch


def run(script: Path, work: Path, deadline: float = 20.0, **more: Any) -> Outcome:
    job = {
        "mode": "script",
        "script": str(script),
        "module": "",
        "argv": more.pop("argv", []),
        "roots": [str(script.parent)],
        "start": str(script.parent),
        "warmup": 2,
        "plain": 2,
        "window": 2,
        "seconds": 5.0,
        **more,
    }
    return launch(job, sys.executable, script.parent, work, deadline=deadline)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def test_what_is_tried_is_told_again_while_time_runs_out(tmp_path: Path) -> None:
    doing = tmp_path / "doing.json"
    doing.write_text('{"change": "prefetch", "run": 2, "left": 30.0}')
    told: list[dict[str, Any]] = []
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)"]) as child:
        _wait(child, 20.0, doing, told.append)
    assert len(told) > 1
    assert {(each["change"], each["run"]) for each in told} == {("prefetch", 2)}
    left = [each["left"] for each in told]
    assert left[0] == pytest.approx(30.0, abs=0.1)
    assert left[0] - left[-1] >= 0.4


def test_a_crash_is_reported_with_its_line(script: Path, tmp_path: Path) -> None:
    script.write_text("import sys\n\n\ndef load():\n    raise KeyError('label')\n\n\nload()\n")
    report = run(script, tmp_path / "work").report
    assert report is not None
    assert report["status"] == "crashed"
    assert report["error"]["type"] == "KeyError"
    assert (report["error"]["spot"]["path"], report["error"]["spot"]["line"]) == ("train.py", 5)


def test_the_script_sees_what_it_would_see_alone(script: Path, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("HERE = True\n")
    script.write_text(
        "import os, pickle, sys\nimport beside\n\n\nclass Thing:\n    pass\n\n\n"
        "pickle.loads(pickle.dumps(Thing()))\n"
        "print([__name__, __file__, sys.argv[1:], os.getcwd(), 'json' in dir(), sys.modules['__main__'].Thing])\n"
    )
    outcome = run(script, tmp_path / "work", argv=["--data", "x"])
    expected = (
        f"['__main__', {str(script)!r}, ['--data', 'x'], {str(tmp_path)!r}, False, <class '__main__.Thing'>]"
    )
    assert outcome.tail[-1] == expected
    assert outcome.report is not None
    assert outcome.report["executed"]["train.py"] == [1, 2, 5, 6, 9, 10]
    assert set(outcome.report["sources"]) == {"train.py", "beside.py"}


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("3", 3), ("'no data'", 1), ("", 0)])
def test_the_exit_status_is_kept(script: Path, tmp_path: Path, code: str, status: int) -> None:
    script.write_text(f"import sys\nsys.exit({code})\n")
    outcome = run(script, tmp_path / "work")
    report = outcome.report
    assert report is not None
    assert (report["status"], report["exit"]) == ("ended", status)
    assert [line for line in outcome.tail if line] == [line for line in [code.strip("'")] if line == "no data"]


def test_a_hang_is_ended_at_its_line_and_leaves_no_process(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n\n\ndef wait():\n    while True:\n        time.sleep(1)\n\n\nwait()\n"
    )
    began = time.monotonic()
    outcome = run(script, tmp_path / "work", deadline=2.0)
    assert time.monotonic() - began < 15
    assert outcome.report is not None
    assert outcome.report["status"] == "deadline"
    assert outcome.report["hung"]["line"] in (7, 8)
    assert gone(int(outcome.tail[0]))


def test_a_dead_interpreter_is_told_by_its_signal(script: Path, tmp_path: Path) -> None:
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    outcome = run(script, tmp_path / "work")
    assert outcome.report is None
    assert outcome.status == -signal.SIGKILL


def test_an_interrupt_ends_the_child(script: Path, tmp_path: Path) -> None:
    script.write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Terminated):
        run(script, tmp_path / "work", deadline=60.0)
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_script_that_changes_its_folder_keeps_its_name(script: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "late.py").write_text("def load():\n    raise KeyError('label')\n")
    script.write_text("import os\nos.chdir('data')\nimport late\nopen('log.txt', 'w').close()\nlate.load()\n")
    report = run(script, tmp_path / "work").report
    assert report is not None
    assert report["error"]["spot"]["path"] == "late.py"
    assert set(report["sources"]) == {"train.py", "late.py"}
    assert set(report["executed"]) == {"train.py", "late.py"}
    assert report["written"] == ["data/log.txt"]


def test_a_script_with_handlers_of_its_own_is_ended_all_the_same(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import signal, time\n\n\ndef stay(number, frame):\n    print('staying', flush=True)\n\n\n"
        "for name in ('SIGTERM', 'SIGINT', 'SIGHUP', 'SIGALRM'):\n    signal.signal(getattr(signal, name), stay)\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "while True:\n    time.sleep(0.1)\n"
    )
    outcome = run(script, tmp_path / "work", deadline=3.0)
    assert "staying" in outcome.tail
    assert outcome.report is not None
    assert outcome.report["status"] == "deadline"


def test_a_script_that_spawns_workers_runs_as_it_would_alone(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import multiprocessing\n\n\ndef work(n):\n    return n * 2\n\n\n"
        "if __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        print(pool.map(work, range(4)), flush=True)\n"
    )
    outcome = run(script, tmp_path / "work")
    assert outcome.tail[-1] == "[0, 2, 4, 6]"
    assert outcome.report is not None
    assert (outcome.report["status"], outcome.report["exit"]) == ("ended", 0)
    assert outcome.report["processes"] == ["multiprocessing"]


@pytest.mark.parametrize(
    ("start", "named"),
    [
        ("subprocess.run([sys.executable, '-c', 'print()'])", [Path(sys.executable).name]),
        ("subprocess.run(['true'])", []),
        ("os.fork() or sys.exit(4)", ["os.fork"]),
    ],
)
def test_processes_that_could_train_are_named_and_stay_mute(
    script: Path, tmp_path: Path, start: str, named: list[str]
) -> None:
    script.write_text(
        f"import os, subprocess, sys\n{start}\ntry:\n    print(os.wait())\nexcept OSError:\n    pass\n"
    )
    outcome = run(script, tmp_path / "work")
    assert outcome.report is not None
    assert (outcome.report["status"], outcome.report["exit"]) == ("ended", 0)
    assert outcome.report["processes"] == named
    assert "sys.exit" not in start or outcome.tail[-1].endswith(f"{4 << 8})")


def test_a_program_that_takes_the_place_of_the_script_does_not_begin(script: Path, tmp_path: Path) -> None:
    script.write_text("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(\"began\")'])\n")
    outcome = run(script, tmp_path / "work")
    assert outcome.report is not None
    assert outcome.report["status"] == "replaced"
    assert outcome.report["program"] == Path(sys.executable).name
    assert (outcome.report["spot"]["path"], outcome.report["spot"]["line"]) == ("train.py", 2)
    assert "began" not in outcome.tail


def test_threads_of_the_script_are_waited_for(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import threading, time\n\n\ndef work():\n    time.sleep(0.3)\n    print('done', flush=True)\n\n\n"
        "threading.Thread(target=work).start()\n"
    )
    assert run(script, tmp_path / "work").tail[-1] == "done"


def test_notebook_cells_keep_their_numbers(tmp_path: Path) -> None:
    notebook = tmp_path / "n.ipynb"
    notebook.write_text("{}")
    cells = [
        {"filename": f"{notebook}#cell-2", "cell": 2, "source": "def half(x):\n    return x / 2\n"},
        {
            "filename": f"{notebook}#cell-5",
            "cell": 5,
            "source": "import inspect\nprint(inspect.getsource(half))\nhalf('a')\n",
        },
    ]
    report = run(notebook, tmp_path / "work", mode="notebook", cells=cells).report
    assert report is not None
    assert report["error"]["type"] == "TypeError"
    assert report["error"]["spot"] == {"path": "n.ipynb", "line": 2, "cell": 2, "function": "half"}
    assert report["executed"] == {"n.ipynb#2": [1, 2], "n.ipynb#5": [1, 2, 3]}


def test_a_module_runs_as_python_m_does(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("from . import other\nprint(__name__, __package__, other.X)\n")
    (package / "other.py").write_text("X = 1\n")
    outcome = run(package / "train.py", tmp_path / "work", mode="module", module="pack.train")
    # `run` starts in the script's folder, so the module is looked for from there.
    assert outcome.report is not None
    assert outcome.report["status"] == "crashed"
    job = {"mode": "module", "module": "pack.train", "script": str(package / "train.py"), "argv": []}
    rest = {"roots": [str(tmp_path)], "start": str(tmp_path), "warmup": 1, "plain": 1, "window": 1, "seconds": 1.0}
    right = launch({**job, **rest}, sys.executable, tmp_path, tmp_path / "again", deadline=20.0)
    assert right.tail[-1] == "__main__ pack 1"


def test_interpreters_that_cannot_trace(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such interpreter"):
        find_python(str(tmp_path / "python"))
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with pytest.raises(UserError, match="has no TensorFlow"):
        find_python(str(bare / "bin" / "python"))
    with pytest.raises(UserError, match="does not run as a Python"):
        find_python("true")


def gone(pid: int) -> bool:
    """Say whether a process ended within a second."""
    for _ in range(20):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
