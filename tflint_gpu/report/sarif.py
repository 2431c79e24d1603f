"""The format ``sarif``: SARIF 2.1.0, as GitHub code scanning and editors read it."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tflint_gpu import __version__
from tflint_gpu.checks.pages import Page
from tflint_gpu.findings import Edit, Finding, Location, Severity
from tflint_gpu.report.edits import edits_in
from tflint_gpu.report.fingerprint import fingerprints
from tflint_gpu.report.merge import Report
from tflint_gpu.source.texts import Error

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note", Severity.HINT: "note"}
#: What GitHub sorts quality alerts by.
_PROBLEMS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "recommendation",
    Severity.HINT: "recommendation",
}
_WHAT_IT_DOES = re.compile(r"^## What it does\n+(.+?)\n\n", re.DOTALL | re.MULTILINE)


def render(report: Report) -> str:
    """Return the report as one SARIF log with one run and a final line end."""
    return json.dumps(log(report), indent=1, ensure_ascii=False) + "\n"


def log(report: Report) -> dict[str, Any]:
    """Return the report as a SARIF log in plain data."""
    root = {"uri": f"{report.texts.root.resolve().as_uri()}/"}
    run = {
        "tool": {
            "driver": {
                "name": "tflint-gpu",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(page) for page in report.rules],
            }
        },
        # A static and a traced run of one commit are two analyses, not one that replaces the other.
        "automationDetails": {"id": f"tflint-gpu/{'static' if report.evidence is None else 'traced'}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: root},
        "invocations": [
            {
                "executionSuccessful": not any(error.fatal for error in report.errors),
                "workingDirectory": root,
                "toolExecutionNotifications": [
                    _notification(error, report) for error in (*report.errors, *report.left_out)
                ],
            }
        ],
        "results": _results(report),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(page: Page) -> dict[str, Any]:
    text = page.text()
    told = _WHAT_IT_DOES.search(text)
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": " ".join(told[1].split()) if told else page.summary},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
        "properties": {
            "tags": ["performance", "gpu", page.factor],
            "precision": "high",
            "problem.severity": _PROBLEMS[page.severity],
        },
    }


def _results(report: Report) -> list[dict[str, Any]]:
    index = {page.code: number for number, page in enumerate(report.rules)}
    names = fingerprints([*report.findings, *report.suppressed], report.texts)
    results = [_result(finding, names[finding], index, report) for finding in report.findings]
    for finding in report.suppressed:
        silenced = _result(finding, names[finding], index, report)
        results.append({**silenced, "suppressions": [{"kind": "inSource"}]})
    return results


def _result(finding: Finding, name: str, index: dict[str, int], report: Report) -> dict[str, Any]:
    text = finding.message
    if finding.related:
        # GitHub shows a related place only where the message links to it by its id.
        links = (f"[{other.message}]({number})" for number, other in enumerate(finding.related, 1))
        text = f"{text} See: {', '.join(links)}."
    result: dict[str, Any] = {
        "ruleId": finding.code,
        **({"ruleIndex": index[finding.code]} if finding.code in index else {}),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.location, report)] if finding.location.path else [],
        "partialFingerprints": {"primaryLocationLineHash": name, "tflintGpu/v1": name},
        "properties": _properties(finding),
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": other.message}, **_location(other.location, report)}
            for number, other in enumerate(finding.related, 1)
        ]
    if finding.impact:
        result["rank"] = round(min(1.0, max(0.0, finding.impact.step_share)) * 100, 1)
    if fixes := _fixes(finding, report):
        result["fixes"] = fixes
    return result


def _properties(finding: Finding) -> dict[str, Any]:
    return {
        "verdict": str(finding.verdict),
        "severity": str(finding.severity),
        "evidence": [
            {"metric": figure.metric, "value": figure.value, "unit": figure.unit} for figure in finding.evidence
        ],
        **({"impactBasis": finding.impact.basis} if finding.impact else {}),
    }


def _location(where: Location, report: Report) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(where.path)}
    if where.cell is None:
        physical["region"] = {
            **_region(where),
            "snippet": {
                "text": "\n".join(report.texts.lines(where.path)[where.line - 1 : where.end_line]),
            },
        }
        return {"physicalLocation": physical}
    if line := _line_in_file(where, report):
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical, **_cell(where)}


def _cell(where: Location) -> dict[str, Any]:
    """Return the cell of a notebook as SARIF can name it, nothing for other files."""
    if where.cell is None:
        return {}
    return {"logicalLocations": [{"name": f"cell {where.cell}, line {where.line}", "kind": "member"}]}


def _line_in_file(where: Location, report: Report) -> int | None:
    """Return the line of the notebook's JSON that holds a line of a cell: all that other tools can show."""
    from tflint_gpu.fixes.notebook import line_in_file

    raw = report.texts.raw(where.path)
    text = (raw or b"").decode("utf-8-sig", errors="replace")
    return line_in_file(text, where.cell or 1, where.line)


def _region(where: Location) -> dict[str, int]:
    return {
        "startLine": where.line,
        "startColumn": where.column,
        "endLine": where.end_line,
        "endColumn": where.end_column,
    }


def _artifact(path: str) -> dict[str, str]:
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": _ROOT}


def _fixes(finding: Finding, report: Report) -> list[dict[str, Any]]:
    if finding.fix is None:
        return []
    edits, _ = edits_in(report, finding)
    # A cell's columns mean nothing in the notebook's JSON, which is what a SARIF reader would edit.
    if not edits or any(edit.location.cell is not None for edit in edits):
        return []
    changes = [
        {"artifactLocation": _artifact(path), "replacements": [_replacement(edit) for edit in its]}
        for path, its in groupby(edits, key=lambda edit: edit.location.path)
    ]
    return [{"description": {"text": finding.fix.title}, "artifactChanges": changes}]


def _replacement(edit: Edit) -> dict[str, Any]:
    return {"deletedRegion": _region(edit.location), "insertedContent": {"text": edit.text}}


def _notification(error: Error, report: Report) -> dict[str, Any]:
    told: dict[str, Any] = {
        "level": "error" if error.fatal else "warning",
        "message": {"text": error.message},
    }
    if error.path:
        place: dict[str, Any] = {"artifactLocation": _artifact(error.path)}
        where = Location(error.path, error.line, cell=error.cell)
        if line := error.line if error.cell is None else _line_in_file(where, report):
            place["region"] = {"startLine": line}
        told["locations"] = [{"physicalLocation": place, **_cell(where)}]
    return told
