"""Plant a known cost in a training program, trace it, and compare the share that the trace finds with the truth.

    python benchmarks/planted.py [--rounds N] [--only WORD]...

The programs stand in `plants.py`. Each notes its own steps and the planted cost of each; the trace is not asked.
Where it cannot tell (work that overlaps with the step), the truth is what the same program without the cost takes
less, in two untraced runs after the trace. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plants import HEAD, PLANTS, SOUND, Plant

ROOT = Path(__file__).resolve().parents[1]
#: The trace lets ten steps pass, times twenty, profiles twenty: a figure is held against notes of its own steps.
PLAIN, PROFILED = (10, 30), (31, 49)
#: Figures that the trace takes from its plain steps; the others are of profiled ones.
OF_PLAIN_STEPS = (
    *("callback_share", "calls_share", "refill_share", "validation_share"),
    *("loop_share", "cpu_op_share"),
)
#: Points (of a hundred) that a share may be off.
LIMIT = 5.0


def run(script: Path, *, traced: bool) -> dict[str, object] | None:
    """Run `script`, which leaves its notes beside it; traced, return the report with the evidence in it."""
    evidence = script.with_name("evidence.json")
    watch = [
        "-m",
        "tflint_gpu",
        "trace",
        "--what-if",
        "none",
        "--output-format",
        "json",
        "--evidence-out",
        str(evidence),
    ]
    command = [sys.executable, *(watch if traced else []), script.name, str(script.with_name("notes.txt"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in ((0, 1) if traced else (0,)):
        raise SystemExit(f"a planted program failed: {done.stderr[-500:]}")
    if not traced:
        return None
    return {**json.loads(done.stdout), "evidence": json.loads(evidence.read_text(encoding="utf-8"))}


def noted(script: Path, steps: tuple[int, int] = PLAIN, *, steady: bool = False) -> tuple[float, float]:
    """Return the mean of `steps` and the mean planted cost in one, in seconds.

    Python's collector comes by now and then. The breakdown has what of that falls within a step; figures of a
    typical step (`steady`) have nothing of it.
    """
    moments: list[float] = []
    costs: list[float] = [0.0]
    for line in script.with_name("notes.txt").read_text(encoding="utf-8").splitlines():
        word, value = line.split()
        if word == "cost":
            costs[-1] += float(value)
        else:
            moments.append(float(value))
            costs.append(0.0)
    # Long steps: the trace makes do with fewer after some seconds.
    first, last = steps[0], min(steps[1], len(moments) - 1)
    if last < first + 5:
        raise SystemExit(f"only {len(moments)} steps were noted")
    # The cost that stands under a number was paid on the way to the step's end of that number.
    lengths = {at: moments[at] - moments[at - 1] for at in range(first + 1, last + 1)}
    if steps == PROFILED or steady:
        own = {at: length - costs[at] for at, length in lengths.items()}
        pause = 5 * statistics.median(own.values() if steady else lengths.values())
        lengths = {at: length for at, length in lengths.items() if own[at] <= pause}
    return statistics.fmean(lengths.values()), statistics.fmean(costs[at] for at in lengths)


def truth(plant: Plant, script: Path) -> float:
    """Return the share of the step that the planted cost takes, after a traced run of `script`."""
    if plant.without is None:
        steps = PLAIN if plant.figure in OF_PLAIN_STEPS else PROFILED
        step, cost = noted(script, steps, steady=bool(plant.rule))
        return cost / step
    script.write_text(plant.text(sound=True), encoding="utf-8")
    run(script, traced=False)
    bare = noted(script)[0]
    script.write_text(plant.text(), encoding="utf-8")
    run(script, traced=False)
    return 1.0 - bare / noted(script)[0]


def measured(plant: Plant, report: dict[str, object]) -> tuple[float | None, str]:
    """Return the share that the report gives for the planted cost, and the verdict on the rule's finding."""
    evidence = report["evidence"]
    assert isinstance(evidence, dict) and isinstance(report["findings"], list)
    steps = evidence["steps"]
    total = sum(step["step_ms"] for step in steps)
    if plant.rule:
        found = [finding for finding in report["findings"] if finding["name"] == plant.rule]
        figures = {each["metric"]: each["value"] for finding in found for each in finding["evidence"]}
        return figures.get(plant.figure), found[0]["verdict"] if found else "not found"
    if plant.figure == "callback_share":
        return max(each["ms_per_step"] for each in evidence["callbacks"]) / evidence["window"]["step_ms"], ""
    if plant.figure == "python in the step":
        inside = [
            each for each in evidence["placements"] if each["op"] in ("EagerPyFunc", "PyFunc") and each["in_step"]
        ]
        return sum(each["ms"] or 0.0 for each in inside) * len(steps) / total, ""
    return sum(step["buckets"][plant.figure] for step in steps) / total, ""


@dataclass(frozen=True)
class Pair:
    """One run: the true share, the measured one where the trace found it, and the verdict."""

    true: float
    share: float | None
    verdict: str

    @property
    def off(self) -> float:
        """Points of a hundred that the measured share is off; all of them where nothing was found."""
        return 100 * (self.share - self.true) if self.share is not None else -100.0

    @property
    def right(self) -> bool:
        """Whether the verdict names the cost as one."""
        return self.share is not None and self.verdict in ("", "confirmed", "observed")


def pair(plant: Plant, folder: Path) -> Pair:
    """Trace `plant` once, and say what it found and what was there."""
    script = folder / "train.py"
    script.write_text(plant.text(), encoding="utf-8")
    report = run(script, traced=True)
    assert report is not None
    share, verdict = measured(plant, report)
    return Pair(truth(plant, script), share, verdict)


def row(plant: Plant, folder: Path, rounds: int) -> str:
    """Return the row of one plant: medians of `rounds` runs, and how far the single ones were off."""
    pairs = [pair(plant, folder) for _ in range(rounds)]
    off = statistics.median(each.off for each in pairs)
    right = abs(off) <= LIMIT and all(each.right for each in pairs)
    shares = [each.share for each in pairs if each.share is not None]
    cells = (
        f"{statistics.median(each.true for each in pairs):.1%}",
        f"{statistics.median(shares):.1%}" if shares else "–",
        f"{off:+.1f}",
        f"{min(each.off for each in pairs):+.1f} to {max(each.off for each in pairs):+.1f}",
        ", ".join(dict.fromkeys(each.verdict or "–" for each in pairs)),
        "yes" if right else "**no**",
    )
    return f"| {plant.name} | {plant.rule or plant.figure} | {' | '.join(cells)} |"


def quiet(name: str, folder: Path) -> str:
    """Return the row of a sound program."""
    script = folder / "train.py"
    script.write_text((HEAD + SOUND[name]).replace("COST_MS", "0"), encoding="utf-8")
    report = run(script, traced=True)
    assert report is not None and isinstance(report["findings"], list)
    loud = [
        finding["name"]
        for finding in report["findings"]
        if finding["severity"] in ("warning", "error") and finding["verdict"] in ("confirmed", "observed")
    ]
    return f"| {name} | none | | | | | {', '.join(loud)} | {'**no**' if loud else 'yes'} |"


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="only programs with this in their name")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program, whose medians count (3)")
    given = parser.parse_args()
    words = given.only or [""]
    print(
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before; medians of {given.rounds} runs.\n"
    )
    print("| planted | judged by | true | measured | points off | of single runs | verdict | right |")
    print("|---|---|--:|--:|--:|--:|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for plant in PLANTS:
            if any(word in plant.name for word in words):
                print(row(plant, Path(folder), given.rounds), flush=True)
        for name in SOUND:
            if any(word in name for word in words):
                print(quiet(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
