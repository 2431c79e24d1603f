"""Time ``tflint-gpu check`` beside `ast.parse`, flake8 and ruff: the same files, in turn, in one run.

    python benchmarks/static.py [--publish] PATH...

PATH is any folder of Python files, or several. Prints two Markdown tables: what was measured, and each bound that
the project sets itself beside the figure. README.md in this folder says how to read them; ``--publish`` puts them
there. flake8 and ruff must be installed (dependency groups ``bench`` and ``dev``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from page import publish

ROOT = Path(__file__).resolve().parents[1]
INSIDE = [sys.executable, str(ROOT / "benchmarks" / "inside.py")]
TOOL = [sys.executable, "-m"]
CHECK = [*TOOL, "tflint_gpu", "check", "--isolated", "--exclude", "*.ipynb"]
COLD = [*CHECK, "--no-cache"]
FLAKE8 = [*TOOL, "flake8", "--isolated", "-j1", "--select", "F401"]
RUFF = [*TOOL, "ruff", "check", "--isolated", "--no-cache", "--no-respect-gitignore", "--select", "F401"]
#: Start-up is over in a blink, so it is measured more often.
STARTS = 10
#: The speed of `ast.parse` at which the bound on lines a second is stated.
PARSER_SPEED = 190_000

PARSE_ROW = "`ast.parse` of the files that survive skipping, in process"
INSIDE_ROW = "`tflint-gpu check --no-cache --jobs 1`, all rules, in process"
CHECK_ROW = "the same, whole process"
JOBS_ROW = "`tflint-gpu check --no-cache`, as many processes as it likes"
WARM_ROW = "`tflint-gpu check`, nothing changed since the last run"
FLAKE8_ROW = "`flake8 -j1 --select F401`"
RUFF_ROW = "`ruff check --select F401 --no-cache`"
START_ROW = "`tflint-gpu check` of one file without TensorFlow, no cache"
VERSION_ROW = "`flake8 --version`"


@dataclass(frozen=True)
class Run:
    """Wall and CPU seconds of one run; the peak memory of its process in megabytes."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Bound:
    """What the project promises: `limit` is in the unit of `figure`, and `above` says on which side to stay."""

    what: str
    figure: float
    limit: float
    above: bool = False
    form: str = "{:.2f}"

    def row(self) -> str:
        """Return the bound as a line of a Markdown table."""
        side = "at least" if self.above else "at most"
        held = self.figure >= self.limit if self.above else self.figure <= self.limit
        limit, figure = self.form.format(self.limit), self.form.format(self.figure)
        return f"| {self.what} | {side} {limit} | {figure} | {'yes' if held else '**no**'} |"


def measure(command: list[str], folder: Path) -> Run:
    """Run `command` in `folder`; one that times itself prints JSON. Raises `SystemExit` where it failed."""
    own = command[: len(INSIDE)] == INSIDE
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE if own else subprocess.DEVNULL,
        stderr=None if own else subprocess.DEVNULL,
    )
    told = process.stdout.read() if process.stdout else b""
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    # Linters end with 1 where they found something, tflint-gpu with 2 where a file is no Python.
    if process.returncode not in ((0,) if own else (0, 1, 2)):
        raise SystemExit(f"{' '.join(command[:4])} … ended with {process.returncode}; is it installed?")
    # Linux counts kilobytes, macOS bytes.
    peak = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    if told:
        timed = json.loads(told)
        return Run(timed["wall"], timed["cpu"], peak)
    return Run(wall, used.ru_utime + used.ru_stime, peak)


def in_turn(commands: dict[str, list[str]], rounds: int, folder: Path) -> dict[str, Run]:
    """Run all commands one after another, `rounds` times, and keep of each the run with the least CPU time."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
            runs[name].append(measure(command, folder))
    return {name: min(several, key=lambda run: run.cpu) for name, several in runs.items()}


def lines_in(files: list[Path]) -> int:
    """Count the lines of `files`."""
    return sum(file.read_bytes().count(b"\n") for file in files)


def tables(paths: list[Path], rounds: int, name: str, folder: Path) -> str:
    """Return the Markdown for a run over `paths`; `folder` is an empty one to work in."""
    load = [os.getloadavg()[0]]
    named = [str(path) for path in paths]
    listing, clean = folder / "survivors.txt", folder / "clean.py"
    clean.write_text("import json\n\nprint(json.dumps({}))\n", encoding="utf-8")
    measure([*INSIDE, "survivors", str(listing), *named], folder)
    kept = [Path(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    if not kept:
        raise SystemExit(
            f"no file below {', '.join(named)} has anything to do with TensorFlow; name another folder"
        )
    everything = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    warm = [*CHECK, "--cache-dir", str(folder / "cache"), *named]
    measure(warm, folder)
    runs = in_turn(
        {
            PARSE_ROW: [*INSIDE, "parse", str(listing)],
            INSIDE_ROW: [*INSIDE, "check", *named],
            CHECK_ROW: [*COLD, "--jobs", "1", *named],
            JOBS_ROW: [*COLD, *named],
            WARM_ROW: warm,
            FLAKE8_ROW: [*FLAKE8, *named],
            RUFF_ROW: [*RUFF, *named],
        },
        rounds,
        folder,
    )
    runs |= in_turn({START_ROW: [*COLD, str(clean)], VERSION_ROW: [*TOOL, "flake8", "--version"]}, STARTS, folder)
    load.append(os.getloadavg()[0])
    lines, kept_lines = lines_in(everything), lines_in(kept)
    counted = dict.fromkeys((CHECK_ROW, JOBS_ROW, WARM_ROW, FLAKE8_ROW, RUFF_ROW), lines)
    counted |= {PARSE_ROW: kept_lines, INSIDE_ROW: kept_lines}
    heading = (
        f"{name}: {len(everything):,} files with {lines:,} lines of Python; {len(kept):,} of them with "
        f"{kept_lines:,} lines survive skipping. Python {platform.python_version()}, {os.cpu_count()} cores, load "
        f"average {load[0]:.1f} before and {load[1]:.1f} after. {rounds} rounds, {STARTS} for start-up; shown is "
        f"the one that took the least CPU time. Ratios are of CPU time."
    )
    return "\n".join(
        [
            heading,
            "",
            "| measured | wall | CPU | peak memory | lines a CPU second |",
            "|---|--:|--:|--:|--:|",
            *(measured(row, run, counted.get(row)) for row, run in runs.items()),
            "",
            "| bound | promised | measured | held |",
            "|---|--:|--:|---|",
            *(bound.row() for bound in bounds(runs)),
        ]
    )


def measured(name: str, run: Run, lines: int | None) -> str:
    """Return a line of the first table; `lines` is None for start-up."""
    speed = f"{lines / run.cpu:,.0f}" if lines else ""
    return f"| {name} | {run.wall:.2f} s | {run.cpu:.2f} s | {run.peak:.0f} MB | {speed} |"


def bounds(runs: dict[str, Run]) -> list[Bound]:
    """Return every bound on the static half with its figure."""
    inside, whole, parse = runs[INSIDE_ROW], runs[CHECK_ROW], runs[PARSE_ROW]
    ratio = inside.cpu / parse.cpu
    speed = PARSER_SPEED / ratio
    return [
        Bound("check in process ÷ `ast.parse` of the survivors", ratio, 3),
        Bound(
            "surviving lines a second where `ast.parse` does 190,000", speed, 60_000, above=True, form="{:,.0f}"
        ),
        Bound("flake8 ÷ check, whole processes", runs[FLAKE8_ROW].cpu / whole.cpu, 10, above=True),
        Bound("check with nothing changed ÷ ruff", runs[WARM_ROW].cpu / runs[RUFF_ROW].cpu, 2),
        Bound("start-up ÷ `flake8 --version`", runs[START_ROW].cpu / runs[VERSION_ROW].cpu, 1),
        Bound("peak memory of check, MB (promised for 500,000 lines)", whole.peak, 300, form="{:.0f}"),
    ]


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command is run (3)")
    parser.add_argument("--publish", action="store_true", help="put the tables into README.md of this folder")
    parser.add_argument("--name", help="what to call the files in the table (the names of the folders)")
    given = parser.parse_args()
    paths = [path.resolve() for path in given.paths]
    missing = [path for path in paths if not path.exists()]
    if missing:
        parser.error(f"{missing[0]}: no such file or folder")
    with tempfile.TemporaryDirectory() as folder:
        told = tables(paths, given.rounds, given.name or ", ".join(p.name for p in paths), Path(folder))
    print(told)
    if given.publish:
        publish("static", told)


if __name__ == "__main__":
    main()
