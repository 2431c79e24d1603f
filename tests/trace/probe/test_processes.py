"""Processes that a script starts: which of them could train, and which read the files anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
sys.path[:0] = [{package!r}, {folder!r}]
from tflint_gpu.trace.probe.hooks import ImportWatch
from tflint_gpu.trace.probe.processes import Processes

processes = Processes(print)
processes.install()
ImportWatch({{"multiprocessing.process": processes.install_multiprocessing}})
if __name__ == "__main__":
    {code}
    print(sorted(processes.names), processes.fresh)
"""
STARTED = "from multiprocessing import get_context as g; import part; g('{}').Process(target=part.work).start()"
PYTHON = [Path(sys.executable).name]


@pytest.mark.parametrize(
    ("code", "names", "fresh"),
    [
        ("pass", [], False),
        ("import subprocess; subprocess.run([sys.executable, '-c', ''])", PYTHON, True),
        ("import subprocess; subprocess.run(args=['true'])", [], False),
        ("import os; os.system('true')", [], False),
        ("import os; os.fork() or os._exit(0)", ["os.fork"], False),
        (STARTED.format("spawn"), ["multiprocessing"], True),
        (STARTED.format("fork"), ["multiprocessing"], False),
    ],
    ids=["nothing", "a Python", "another program", "a shell", "a copy", "spawned", "forked"],
)
def test_processes_that_could_train_are_named(tmp_path: Path, code: str, names: list[str], fresh: bool) -> None:
    (tmp_path / "part.py").write_text("def work():\n    pass\n")
    script = tmp_path / "script.py"
    package = str(Path(__file__).parents[3])
    script.write_text(RUN.format(package=package, folder=str(tmp_path), code=code))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert not done.stderr
    assert done.stdout.splitlines()[-1] == f"{names} {fresh}"
