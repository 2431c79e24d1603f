"""The format ``github``: workflow commands, which GitHub shows as annotations of a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.report.concise import place
from tflint_gpu.report.merge import Report
from tflint_gpu.source.texts import Error

#: GitHub shows this many annotations of a level for each step, and drops the others without a word.
LIMIT = 10

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
    Severity.HINT: "notice",
}
_PROVEN = frozenset({Verdict.CONFIRMED, Verdict.OBSERVED})


def render(report: Report) -> str:
    """Return a workflow command for each finding, the loudest and the proven first, and what the limit cut."""
    commands = [("error", _error(error)) for error in report.errors]
    # Stable: inside a level and a state of proof the report's own order, by impact, stays.
    ranked = sorted(report.findings, key=lambda item: (-item.severity, item.verdict not in _PROVEN))
    commands += [(_LEVELS[finding.severity], _finding(finding)) for finding in ranked]
    return "".join(f"{line}\n" for line in _limited(commands))


def _limited(commands: list[tuple[str, str]]) -> Iterator[str]:
    shown: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    for level, command in commands:
        counter = shown if shown[level] < LIMIT else cut
        counter[level] += 1
        if counter is shown:
            yield command
    if cut:
        counts = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in cut.items())
        yield f"Not annotated, as GitHub shows {LIMIT} of a level: {counts}. --output sarif:FILE has them all."


def _finding(finding: Finding) -> str:
    where = finding.location
    properties: list[tuple[str, str | int]] = []
    if where.path:
        properties.append(("file", where.path))
    if where.path and where.cell is None:
        properties += [("line", where.line), ("endLine", where.end_line)]
        # Columns of a range over several lines would be taken for columns of its first line.
        if where.line == where.end_line:
            properties += [("col", where.column), ("endColumn", where.end_column)]
    properties.append(("title", f"{finding.code} {finding.name}"))
    message = f"{place(finding)} [{finding.verdict}] {finding.message}"
    return _command(_LEVELS[finding.severity], properties, message)


def _error(error: Error) -> str:
    properties: list[tuple[str, str | int]] = []
    if error.path:
        properties.append(("file", error.path))
        properties += [("line", error.line)] if error.cell is None else []
    return _command("error", [*properties, ("title", "not checked")], str(error))


def _command(level: str, properties: list[tuple[str, str | int]], message: str) -> str:
    described = ",".join(f"{key}={_escaped(str(value), inside=True)}" for key, value in properties)
    return f"::{level} {described}::{_escaped(message)}"


def _escaped(text: str, *, inside: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if inside else text
