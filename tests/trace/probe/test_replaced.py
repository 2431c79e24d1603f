"""Texts served in place of files, and processes that are out of reach of that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Serves another text for ``part.py``, runs what is handed over, and says what it saw.
RUN = """
import sys
sys.path[:0] = [{package!r}, {folder!r}]
from tflint_gpu.trace.probe.hooks import ImportWatch
from tflint_gpu.trace.probe.replaced import Replaced

replaced = Replaced({files!r})
ImportWatch(replaced.actions())
if __name__ == "__main__":
    {code}
    import part
    print(part.VALUE, replaced.bypassed)
"""


STARTED = "from multiprocessing import get_context as g; import part; g('{}').Process(target=part.work).start()"


def told(tmp_path: Path, code: str, *, served: bool = True) -> str:
    (tmp_path / "part.py").write_text("VALUE = 'old'\ndef work():\n    pass\n")
    (tmp_path / "new").write_text("VALUE = 'new'\ndef work():\n    pass\n")
    files = {str(tmp_path / "part.py"): str(tmp_path / "new")} if served else {}
    script = tmp_path / "script.py"
    package = str(Path(__file__).parents[3])
    script.write_text(RUN.format(package=package, folder=str(tmp_path), files=files, code=code))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", "new False"),
        ("import subprocess; subprocess.run([sys.executable, '-c', 'import part'], cwd=sys.path[1])", "new True"),
        ("import subprocess; subprocess.run(args=['true'])", "new False"),
        ("import os; os.system('true')", "new False"),
        (
            STARTED.format("spawn"),
            "new True",
        ),
        (
            STARTED.format("fork"),
            "new False",
        ),
    ],
    ids=["nothing", "a Python", "another program", "a shell", "spawned", "forked"],
)
def test_another_python_is_out_of_reach(tmp_path: Path, code: str, expected: str) -> None:
    assert told(tmp_path, code) == expected


def test_a_program_that_is_served_nothing_is_not_watched(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.run([sys.executable, '-c', ''])"
    assert told(tmp_path, code, served=False) == "old False"
