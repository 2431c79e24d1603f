"""Fix a copy of every project and hold each changed file against checks that are not the fixer's own.

    python benchmarks/fixes.py [--publish] [--diffs FOLDER] PATH...

PATH is a project, or with ``--each`` a folder of projects. Every one is copied, and ``check --fix-only`` is run on
the copy twice; then the same on another copy with ``--unsafe-fixes``. Prints a Markdown table, and every file that
fails a check, with what is wrong. Exit status 1 if one does. ``--diffs`` keeps what was changed, to read.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from page import publish

CHECK = [sys.executable, "-m", "tflint_gpu", "check", "--isolated", "--fail-on", "never"]
SOURCES = ("*.py", "*.ipynb")
FIXED = re.compile(r"^note: fixed (\d+) finding", re.MULTILINE)
DECLINED = re.compile(r"^note: .* not fixed: (.*)$", re.MULTILINE)
LOUDNESS = ("hint", "info", "warning", "error")
BOM = b"\xef\xbb\xbf"


@dataclass
class Tally:
    """What one kind of run came to, over all projects."""

    files: int = 0
    lines: int = 0
    fixed: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0
    again: int = 0
    failures: list[str] = field(default_factory=list)
    declined: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--each", action="store_true", help="every entry of PATH is a project of its own")
    parser.add_argument("--safe", action="store_true", help="leave the unsafe fixes out")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="keep the diffs here")
    parser.add_argument("--name", help="what to call the files in the table (the names of the folders)")
    parser.add_argument("--publish", action="store_true", help="put the table into README.md of this folder")
    given = parser.parse_args()
    projects = [each for path in given.paths for each in (sorted(path.iterdir()) if given.each else [path])]
    projects = [project for project in projects if project.is_dir()]
    kinds = {"safe": [], "safe and unsafe": ["--unsafe-fixes"]}
    tallies = {kind: Tally() for kind in kinds if kind == "safe" or not given.safe}
    for project in projects:
        for kind in tallies:
            print(f"{project.name}: {kind}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as folder:
                diff = fix(project, Path(folder) / project.name, kinds[kind], tallies[kind])
            if given.diffs and diff:
                given.diffs.mkdir(parents=True, exist_ok=True)
                name = f"{project.name}.{kind.replace(' ', '-')}.diff"
                (given.diffs / name).write_text(diff, encoding="utf-8", errors="surrogateescape")
    told = table(tallies, given.name or ", ".join(path.name for path in given.paths), len(projects))
    print(told)
    for kind, tally in tallies.items():
        for failure in tally.failures:
            print(f"FAILED ({kind}): {failure}")
        for reason, count in tally.declined.most_common(12):
            print(f"declined ({kind}) {count} ×: {reason}", file=sys.stderr)
    if given.publish:
        publish("fixes", told)
    sys.exit(any(tally.failures for tally in tallies.values()))


def fix(project: Path, copy: Path, flags: Sequence[str], tally: Tally) -> str:
    """Fix a `copy` of `project`, count and check what changed, and return the diff."""
    shutil.copytree(project, copy, symlinks=True)
    before = findings(copy)
    said = run([*CHECK, "--fix-only", *flags], copy)
    after = findings(copy)
    old, new = contents(project), contents(copy)
    tally.files += len(old)
    tally.lines += sum(raw.count(b"\n") for raw in old.values())
    tally.fixed += sum(map(int, FIXED.findall(said)))
    tally.declined += Counter(re.sub(r"'[^']*'|\d+", "…", reason) for reason in DECLINED.findall(said))
    changed = sorted(name for name in old if new.get(name) != old[name])
    tally.changed += len(changed)
    tally.failures += [f"{project.name}/{name}: files came or went" for name in old.keys() ^ new.keys()]
    diffs = []
    for name in changed:
        tally.failures += [f"{project.name}/{name}: {problem}" for problem in problems(name, old[name], new[name])]
        if (copy / name).stat().st_mode != (project / name).stat().st_mode:
            tally.failures.append(f"{project.name}/{name}: another mode")
        diffs += diff(f"{project.name}/{name}", old[name], new[name])
    tally.added += sum(line.startswith("+") and not line.startswith("+++") for line in diffs)
    tally.removed += sum(line.startswith("-") and not line.startswith("---") for line in diffs)
    tally.failures += [f"{project.name}: {problem}" for problem in arrivals(before, after)]
    run([*CHECK, "--fix-only", *flags], copy)
    second = contents(copy)
    tally.again += sum(second[name] != new[name] for name in new)
    return "".join(diffs)


def findings(folder: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each rule stands in each file of `folder`, and how loud; hints are left out."""
    told = json.loads(run([*CHECK, "--output-format", "json"], folder, out=True))
    return Counter((each["code"], each["path"], LOUDNESS.index(each["severity"])) for each in told["findings"])


def arrivals(before: Counter[tuple[str, str, int]], after: Counter[tuple[str, str, int]]) -> Iterator[str]:
    """Yield each finding that came with the fixes and is as loud as all that went from its file."""
    gone: dict[str, int] = {}
    for _, path, loud in before - after:
        gone[path] = max(loud, gone.get(path, 0))
    for code, path, loud in after - before:
        if loud >= gone.get(path, 0):
            yield f"{code} came to {path}"


def run(command: Sequence[str], folder: Path, *, out: bool = False) -> str:
    """Run a command in `folder` and return what it printed on standard error, or with `out` on standard output."""
    done = subprocess.run([*command, "."], cwd=folder, capture_output=True, text=True, errors="surrogateescape")
    if "Traceback" in done.stderr:
        raise SystemExit(f"{folder.name}: {done.stderr}")
    return done.stdout if out else done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every source file below `folder`."""
    paths = (path for pattern in SOURCES for path in folder.rglob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def problems(name: str, old: bytes, new: bytes) -> Iterator[str]:
    """Yield what is wrong with a changed file."""
    if old.startswith(BOM) != new.startswith(BOM):
        yield "another mark of UTF-8"
    if (b"\r\n" in old) != (b"\r\n" in new) or (b"\r" in new.replace(b"\r\n", b"") and b"\r\n" in old):
        yield "other line ends"
    if old.endswith(b"\n") != new.endswith(b"\n"):
        yield "another end of the file"
    if name.endswith(".ipynb"):
        yield from notebook_problems(old, new)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(new, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as problem:
            yield f"does not compile: {problem}"
            return
    lost = comments(old) - comments(new)
    if lost:
        yield f"comments are lost: {sorted(lost)[:3]}"
    if mixed_indent(new) and not mixed_indent(old):
        yield "tabs and blanks are mixed"


def comments(raw: bytes) -> Counter[str]:
    """Return the comments of a Python file."""
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(raw).readline))
    except (SyntaxError, tokenize.TokenError):
        return Counter()
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def mixed_indent(raw: bytes) -> bool:
    """Say whether some lines are indented by tabs and others by blanks."""
    return bool(re.search(rb"^\t", raw, re.MULTILINE)) and bool(re.search(rb"^ {2,}\S", raw, re.MULTILINE))


def notebook_problems(old: bytes, new: bytes) -> Iterator[str]:
    """Yield what else than the sources of code cells changed."""
    one, other = json.loads(old), json.loads(new)
    for notebook in (one, other):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["source"] = None
    if one != other:
        yield "more than the sources of cells changed"
    if len(new.splitlines()) - len(old.splitlines()) > 200:
        yield "the JSON was laid out anew"


def diff(name: str, old: bytes, new: bytes) -> list[str]:
    """Return the unified diff of one file as lines."""
    one, other = (raw.decode("utf-8", "surrogateescape").splitlines(keepends=True) for raw in (old, new))
    return list(difflib.unified_diff(one, other, f"a/{name}", f"b/{name}"))


def table(tallies: dict[str, Tally], name: str, projects: int) -> str:
    """Return the figures as Markdown."""
    safe = tallies["safe"]
    rows = [
        f"{name}: {projects} projects, {safe.files:,} files with {safe.lines:,} lines.",
        "",
        "| fixes | findings fixed | files changed | lines + | lines − | files failing a check | second run |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, tally in tallies.items():
        figures = (tally.fixed, tally.changed, tally.added, tally.removed, len(tally.failures), tally.again)
        rows.append(f"| {kind} | {' | '.join(f'{figure:,}' for figure in figures)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
