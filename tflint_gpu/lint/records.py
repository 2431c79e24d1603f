"""Findings and errors as plain data that JSON can hold, and back; a finding's `detail` stays behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflint_gpu.findings import (
    Change,
    Edit,
    Finding,
    Fix,
    Impact,
    Location,
    Measure,
    Related,
    Severity,
    Verdict,
)
from tflint_gpu.source.texts import Error

#: What reading a record that does not have its form may raise.
MALFORMED = (TypeError, ValueError, LookupError, AttributeError)


def record_of(finding: Finding) -> list[Any]:
    """Return `finding` as lists, strings and numbers."""
    return [
        finding.code,
        finding.name,
        finding.factor,
        int(finding.severity),
        finding.message,
        _place(finding.location),
        finding.verdict.value,
        [[_place(other.location), other.message] for other in finding.related],
        [[measure.metric, measure.value, measure.unit] for measure in finding.evidence],
        finding.impact and [finding.impact.step_share, finding.impact.basis],
        finding.fix and _fix_record(finding.fix),
        finding.qualname,
        finding.unfixable,
        finding.reason,
    ]


def finding_of(record: Sequence[Any]) -> Finding:
    """Return the finding that `record_of` made a record of; raises one of `MALFORMED` for anything else."""
    code, name, factor, severity, message, place, verdict, related, evidence, impact, fix, *texts = record
    qualname, unfixable, reason = texts
    return Finding(
        code,
        name,
        factor,
        Severity(severity),
        message,
        Location(*place),
        Verdict(verdict),
        tuple(Related(Location(*where), text) for where, text in related),
        tuple(Measure(*measure) for measure in evidence),
        impact and Impact(*impact),
        fix=fix and _fix(fix),
        qualname=qualname,
        unfixable=unfixable,
        reason=reason,
    )


def edit_record(edit: Edit) -> list[Any]:
    """Return `edit` as plain data."""
    return [_place(edit.location), edit.text]


def edit_of(record: Sequence[Any]) -> Edit:
    """Return the edit that `edit_record` made a record of."""
    place, text = record
    return Edit(Location(*place), text)


def error_record(error: Error) -> list[Any]:
    """Return `error` as plain data."""
    return [error.path, error.line, error.message, error.cell, error.fatal]


def error_of(record: Sequence[Any]) -> Error:
    """Return the error that `error_record` made a record of."""
    return Error(*record)


def _place(where: Location) -> list[Any]:
    return [where.path, where.line, where.column, where.end_line, where.end_column, where.cell]


def _fix_record(fix: Fix) -> list[Any]:
    return [fix.safety, fix.title, [_change_record(change) for change in fix.changes]]


def _change_record(change: Change) -> list[Any]:
    parameters = [list(pair) for pair in change.parameters]
    return [change.kind, _place(change.location), parameters, [_place(where) for where in change.places]]


def _fix(record: Sequence[Any]) -> Fix:
    safety, title, changes = record
    return Fix(safety, title, tuple(map(_change, changes)))


def _change(record: Sequence[Any]) -> Change:
    kind, place, parameters, places = record
    return Change(
        kind,
        Location(*place),
        tuple((name, value) for name, value in parameters),
        tuple(Location(*where) for where in places),
    )
