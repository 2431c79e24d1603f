"""How long from start to report: a trace as a multiple of the untraced time to the same step.

    python benchmarks/report_time.py [--rounds N] [--publish]

A small training notes the end of every step. Its plain run is timed from the start of the interpreter to the last
step that a trace looks at; the trace from its start to its report, without what-if runs and with those of its
default. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from page import publish
from probe import ROOT, TRAININGS

NAME = "fit, batches of 256"
#: Warm-up, plain and profiled steps of a trace by default: the script is stopped after so many.
STEPS = 10 + 20 + 20


def plain(script: Path, notes: Path) -> float:
    """Return the seconds from the start of `script` to the end of its step number `STEPS`."""
    began = time.time()
    subprocess.run([sys.executable, str(script), str(notes)], env=environment(), capture_output=True, check=True)
    times = [line.split() for line in notes.read_text(encoding="utf-8").splitlines()]
    # The notes are on the clock of `perf_counter`, whose zero the script's own start tells.
    started, ended = float(times[0][0]), float(times[STEPS][0])
    return ended - started + (float(times[0][1]) - began)


def traced(script: Path, notes: Path, what_if: str) -> float:
    """Return the seconds that a trace of `script` takes from its start to its report."""
    command = [sys.executable, "-m", "tflint_gpu", "trace", "--isolated", "--what-if", what_if]
    command += ["--evidence-out", str(notes.with_suffix(".json")), str(script), str(notes)]
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=script.parent, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"the trace failed: {done.stderr[-500:]}")
    return time.perf_counter() - began


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (3); the median is shown")
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    given = parser.parse_args()
    found: dict[str, list[float]] = {"untraced, to the same step": [], "trace --what-if none": [], "trace": []}
    with tempfile.TemporaryDirectory() as folder:
        script, notes = Path(folder, "train.py"), Path(folder, "notes.txt")
        first = "import time\nSTARTED = (time.perf_counter(), time.time())\n"
        source = TRAININGS[NAME].replace(
            'notes = open(sys.argv[1], "w")\n',
            'notes = open(sys.argv[1], "w")\nnotes.write(f"{STARTED[0]} {STARTED[1]}\\n")\n',
        )
        script.write_text(first + source, encoding="utf-8")
        for number in range(given.rounds):
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
            found["untraced, to the same step"].append(plain(script, notes))
            found["trace --what-if none"].append(traced(script, notes, "none"))
            found["trace"].append(traced(script, notes, "auto"))
    medians = {name: statistics.median(times) for name, times in found.items()}
    base = medians["untraced, to the same step"]
    told = [
        f"{os.cpu_count()} cores; {NAME}, {STEPS} steps; medians of {given.rounds} rounds.",
        "",
        "| from start to report | seconds | spread | times the untraced |",
        "|---|--:|--:|--:|",
    ]
    told += [
        f"| {name} | {medians[name]:.1f} | {min(times):.1f}–{max(times):.1f} | {medians[name] / base:.1f} |"
        for name, times in found.items()
    ]
    print("\n".join(told))
    if given.publish:
        publish("report time", "\n".join(told))


if __name__ == "__main__":
    main()
