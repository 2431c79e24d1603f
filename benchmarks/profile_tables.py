"""Compare the figures of `tflint-gpu import` with those that TensorFlow wrote beside the same profiles.

    python benchmarks/profile_tables.py [--publish] FOLDER…

Older versions of TensorFlow left an analysis of their own in a profile's folder, `<host>.input_pipeline.pb` beside
`<host>.xplane.pb`. Every profile at or below FOLDER that has both counts. Differences are shares of the step.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median

from page import publish

from tflint_gpu.trace.evidence import Step
from tflint_gpu.trace.importer import import_profile
from tflint_gpu.trace.profile.tables import read_tables

#: How far a figure may be off, as a share of the step.
PROMISED = 0.01

FIGURES = ("step", "GPU busy", "input wait")


def main() -> None:
    """Print each profile with what differs most, then one row a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    off: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for name, ours, theirs in profiles(given.folders):
        step = theirs["step"]
        for figure in FIGURES:
            off[figure].append(abs(ours[figure] - theirs[figure]) / step)
            print(f"{name:40} {figure:10} {ours[figure]:10.4f} {theirs[figure]:10.4f} ms {off[figure][-1]:8.2%}")
    if not off["step"]:
        raise SystemExit("no profile with TensorFlow's own tables beside it")
    told = table(off)
    print("\n" + told)
    if given.publish:
        publish("profile tables", told)


def profiles(folders: Sequence[Path]) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
    """Yield the name of each profile that has tables, our figures and TensorFlow's, in ms a step."""
    for file in sorted(file for folder in folders for file in folder.rglob("*.xplane.pb")):
        beside = file.with_name(file.name.removesuffix("xplane.pb") + "input_pipeline.pb")
        tables = read_tables([beside]) if beside.is_file() else None
        if tables and tables.steps:
            yield file.parent.name, figures(import_profile(file).evidence.steps), figures(tables.steps)


def figures(steps: Sequence[Step]) -> dict[str, float]:
    """Return the means of `steps` by the names of `FIGURES`, in ms."""
    return {
        "step": fmean(step.step_ms for step in steps),
        "GPU busy": fmean(step.gpu_busy_ms or 0.0 for step in steps),
        "input wait": fmean(step.buckets["input_wait"] for step in steps),
    }


def table(off: dict[str, list[float]]) -> str:
    """Return how many profiles agree in each figure, and how far they are off."""
    rows = [
        f"| {figure} | {sum(each <= PROMISED for each in shares)} of {len(shares)} | {median(shares):.2%} | "
        f"{max(shares):.2%} |"
        for figure, shares in off.items()
    ]
    head = ["| figure | within 1 % of the step | median difference | largest |", "|---|--:|--:|--:|"]
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    main()
