"""The format ``rdjson``: reviewdog's diagnostics, with fixes as suggestions that a reviewer can accept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tflint_gpu.findings import Edit, Finding, Location, Severity
from tflint_gpu.fixes.notebook import line_in_file
from tflint_gpu.report.edits import edits_in
from tflint_gpu.report.fixes import offered
from tflint_gpu.report.merge import Report
from tflint_gpu.source.texts import Error

_LEVELS = {
    Severity.ERROR: "ERROR",
    Severity.WARNING: "WARNING",
    Severity.INFO: "INFO",
    Severity.HINT: "INFO",
}


def render(report: Report) -> str:
    """Return the report as a reviewdog ``DiagnosticResult`` with a final line end.

    Its columns count bytes of UTF-8 from 1. Findings without a place are those of the whole run.
    """
    result = {
        "source": {"name": "tflint-gpu"},
        "severity": "WARNING",
        "diagnostics": [
            *(_error(error, report) for error in report.errors),
            *(_finding(finding, report) for finding in report.findings),
        ],
    }
    return json.dumps(result, indent=1, ensure_ascii=False) + "\n"


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    diagnostic: dict[str, Any] = {
        "message": f"[{finding.verdict}] {finding.message}",
        "location": _place(finding.location, report),
        "severity": _LEVELS[finding.severity],
        "code": {"value": f"{finding.code} {finding.name}"},
    }
    if suggestion := _suggestion(finding, report):
        diagnostic["suggestions"] = [suggestion]
    return diagnostic


def _error(error: Error, report: Report) -> dict[str, Any]:
    where = _place(Location(error.path, error.line, cell=error.cell), report) if error.path else {"path": ""}
    return {"message": error.message, "location": where, "severity": "ERROR"}


def _place(where: Location, report: Report) -> dict[str, Any]:
    """Return a location; in a notebook the line of its JSON, and no columns."""
    if not where.path:
        return {"path": ""}
    if where.cell is None:
        return {"path": where.path, "range": _range(where, report)}
    raw = report.texts.raw(where.path) or b""
    line = line_in_file(raw.decode("utf-8-sig", errors="replace"), where.cell, where.line)
    return {"path": where.path, **({"range": {"start": {"line": line}}} if line else {})}


def _range(where: Location, report: Report) -> dict[str, Any]:
    lines = report.texts.lines(where.path)
    return {
        "start": {"line": where.line, "column": _bytes(lines, where.line, where.column)},
        "end": {"line": where.end_line, "column": _bytes(lines, where.end_line, where.end_column)},
    }


def _bytes(lines: Sequence[str], line: int, column: int) -> int:
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text[: column - 1].encode(errors="replace")) + 1


def _suggestion(finding: Finding, report: Report) -> dict[str, Any] | None:
    """Return the fix as one replacement from its first edit to its last: half of it must not be taken alone."""
    if not offered(finding) or finding.location.cell is not None:
        return None
    edits, _ = edits_in(report, finding)
    if not edits or any(edit.location.path != finding.location.path for edit in edits):
        return None
    first, last = edits[0].location, edits[-1].location
    whole = Location(first.path, first.line, first.column, last.end_line, last.end_column)
    text = "".join(_parts(report.texts.lines(first.path), edits))
    if b"\r\n" in (report.texts.raw(first.path) or b""):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return {"range": _range(whole, report), "text": text}


def _parts(lines: Sequence[str], edits: Sequence[Edit]) -> Iterator[str]:
    """Yield the text that stands from the first of `edits` to the last once they are made, piece by piece."""
    yield edits[0].text
    for before, edit in pairwise(edits):
        yield _between(lines, before.location, edit.location)
        yield edit.text


def _between(lines: Sequence[str], one: Location, other: Location) -> str:
    kept = list(lines[one.end_line - 1 : other.line])
    kept[-1] = kept[-1][: other.column - 1]
    return "\n".join(kept)[one.end_column - 1 :]
