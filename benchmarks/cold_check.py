"""Time a cold ``tflint-gpu check`` beside `ast.parse`, flake8 and ruff on the same tree, in the same run.

    python benchmarks/cold_check.py [FOLDER]

Without a folder it takes the Python files of the wheel of tf-models-official, which pip downloads once into
``.tflint-gpu/corpus``. Prints a Markdown table; `make bench` writes it to ``benchmarks/cold_check.md``.
"""

from __future__ import annotations

import ast
import contextlib
import os
import platform
import subprocess
import sys
import time
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

CORPUS = "tf-models-official==2.20.0"
CACHE = Path(".tflint-gpu/corpus")
ROUNDS = 3


@dataclass(frozen=True)
class Run:
    """One command: wall and CPU seconds, peak memory in megabytes."""

    wall: float
    cpu: float
    peak: float


def measure(command: list[str], folder: Path) -> Run:
    """Run `command` in `folder` and return what it took; raises `SystemExit` where it failed to run."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode < 0 or process.returncode > 2:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    # Linux counts kilobytes, macOS bytes.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def best(command: list[str], folder: Path) -> Run:
    """Return the run of `ROUNDS` that took the least CPU time: the machine may be busy with other things."""
    return min((measure(command, folder) for _ in range(ROUNDS)), key=lambda run: run.cpu)


def corpus() -> Path:
    """Return the folder with the unpacked wheel, downloaded where it is not there yet."""
    folder = CACHE / "tree"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE), CORPUS]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(CACHE.glob("*.whl"))) as wheel:
            wheel.extractall(folder)
    return folder.resolve()


def survivors(folder: Path) -> list[Path]:
    """Return the files that a check of `folder` cannot leave aside, all rules on."""
    from tflint_gpu.checks import load
    from tflint_gpu.cli.run import needles_of
    from tflint_gpu.config import load_settings
    from tflint_gpu.program.build import build
    from tflint_gpu.source import discover

    settings = load_settings(folder, {}, isolated=True)
    built = build(discover([folder], settings), settings, needles_of(load(settings)))
    return sorted({Path(module.path).resolve() for program in built.programs for module in program.modules})


def parse(listing: Path) -> None:
    """Parse every file that `listing` names, one a line: the yardstick."""
    warnings.simplefilter("ignore")
    for path in listing.read_text().splitlines():
        with contextlib.suppress(SyntaxError, ValueError):
            ast.parse(Path(path).read_bytes())


def lines_in(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def table(folder: Path) -> str:
    """Return the Markdown table for `folder`."""
    everything = sorted(folder.rglob("*.py"))
    kept = survivors(folder)
    lists = {"all": everything, "kept": kept}
    for name, files in lists.items():
        (CACHE / f"{name}.txt").write_text("".join(f"{file}\n" for file in files))
    me = [sys.executable, str(Path(__file__).resolve()), "--parse"]
    tools = [sys.executable, "-m"]
    commands = {
        f"`ast.parse`, all {len(everything):,} files": [*me, str((CACHE / "all.txt").resolve())],
        f"`ast.parse`, the {len(kept):,} files that survive skipping": [*me, str((CACHE / "kept.txt").resolve())],
        "`tflint-gpu check`, all rules": [*tools, "tflint_gpu", "check", "--isolated", "."],
        "`ruff check --select F401 --no-cache`": [
            *tools,
            "ruff",
            "check",
            "--isolated",
            "--select",
            "F401",
            "--no-cache",
            "--no-respect-gitignore",
            ".",
        ],
        "`flake8 -j1 --select F401`": [*tools, "flake8", "--isolated", "-j1", "--select", "F401", "."],
    }
    runs = {name: best(command, folder) for name, command in commands.items()}
    yardstick = list(runs.values())[1].cpu
    rows = [
        f"| {name} | {run.wall:.2f} s | {run.cpu:.2f} s | {run.peak:.0f} MB | {run.cpu / yardstick:.1f} |"
        for name, run in runs.items()
    ]
    name = CORPUS if folder == (CACHE / "tree").resolve() else folder.name
    cores, python = os.cpu_count(), platform.python_version()
    heading = f"""\
# Cold check

{name}: {lines_in(everything):,} lines of Python, {lines_in(kept):,} of them in files that survive skipping.
Best of {ROUNDS} on {cores} cores, Python {python}. The last column is CPU time over that of `ast.parse` on the
files that survive.

| command | wall | CPU | peak memory | × `ast.parse` |
|---|--:|--:|--:|--:|"""
    return "\n".join([heading, *rows])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--parse"]:
        parse(Path(sys.argv[2]))
    else:
        CACHE.mkdir(parents=True, exist_ok=True)
        print(table(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else corpus()))
