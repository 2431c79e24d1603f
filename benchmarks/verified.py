"""Run fixtures with their fixes and without: which fixes help here, which do not, and do the losses agree?

    python benchmarks/verified.py [--publish] [PROGRAM...]

PROGRAM is one of `PROGRAMS` (default: all, about ten minutes on a quiet machine). Needs TensorFlow. Prints a
Markdown table of what ``tflint-gpu trace --verify-fix`` has measured; nothing of the fixtures is changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page import publish

ROOT = Path(__file__).resolve().parents[1]
#: The programs and the rules whose fixes are tried on them.
PROGRAMS = {
    "fixtures/debugged/sensor_fit.py": ("run-eagerly-enabled",),
    "fixtures/graph/orbit_fit.py": ("eager-train-step",),
    "fixtures/notebook/seedlings.ipynb": ("eager-train-step",),
    "fixtures/precision/soil_moisture.py": ("float64-compute", "steps-per-execution-unset"),
    "fixtures/slow_input/train.py": ("missing-cache", "map-not-parallel", "missing-prefetch"),
}
HEAD = [
    "| program | fix of | safety | ms before | ms after | speed | 95 % interval | runs | first losses | helpful |",
    "|---|---|---|--:|--:|--:|--:|--:|---|---|",
]


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    given = parser.parse_args()
    rows = [row for program in given.programs or PROGRAMS for row in rows_of(program)]
    told = "\n".join([*HEAD, *rows])
    print(told)
    if given.publish:
        publish("verified", told)


def rows_of(program: str) -> Iterator[str]:
    """Verify the fixes of one program and yield a row for each."""
    print(program, file=sys.stderr)
    asked = [f"--verify-fix={rule}" for rule in PROGRAMS[program]]
    command = [sys.executable, "-m", "tflint_gpu", "trace", "--isolated", "--what-if", "none", *asked]
    with tempfile.TemporaryDirectory() as folder:
        places = ["--evidence-out", f"{folder}/evidence.json", "--output-format", "json"]
        done = subprocess.run([*command, *places, program], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 2 or not done.stdout:
        raise SystemExit(f"{program}: {done.stderr}")
    for fix in json.loads(done.stdout)["trace"]["verified_fixes"]:
        yield row(Path(program).name, fix)


def row(name: str, fix: dict[str, Any]) -> str:
    """Return one row of the table."""
    told = [name, fix["name"], fix["safety"]]
    result, losses = fix["result"], fix["losses"]
    if result is None:
        return f"| {' | '.join(told)} | | | | | | {fix['note']} | no |"
    figures = [f"{result['baseline_ms']:.2f}", f"{result['step_ms']:.2f}", f"{result['speedup']:.2f} ×"]
    figures += [f"{result['low']:.2f}–{result['high']:.2f}", str(result["repeats"])]
    agree = "none of the same steps" if losses is None else f"{'agree' if losses['agree'] else 'differ'}"
    if losses is not None:
        agree += f" (apart {losses['difference']:.1%}, run to run {losses['noise']:.1%})"
    return f"| {' | '.join([*told, *figures, agree, 'yes' if fix['helpful'] else 'no'])} |"


if __name__ == "__main__":
    main()
