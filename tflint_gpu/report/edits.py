"""The edits of a finding's fix, for formats that show them: worked out once for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflint_gpu.lint.records import edit_of, edit_record

if TYPE_CHECKING:
    from tflint_gpu.findings import Edit, Finding
    from tflint_gpu.report.merge import Report


def edits_in(report: Report, finding: Finding) -> tuple[tuple[Edit, ...], str]:
    """Return the edits of the fix of `finding`, or none and the reason why not."""
    path = finding.location.path
    version = report.target.tensorflow

    def make() -> list[Any]:
        from tflint_gpu.fixes import edits_of

        made, reason = edits_of(finding, report.texts.raw(path), version)
        return [[edit_record(edit) for edit in made], reason]

    change = finding.fix and (finding.fix.change.kind, finding.fix.change.location, finding.fix.change.parameters)
    edits, reason = report.texts.remembered(path, f"edits {version} {change}", make)
    return tuple(map(edit_of, edits)), reason
