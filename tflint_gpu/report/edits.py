"""The edits of a finding's fix, for formats that show them: worked out once for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflint_gpu.lint.records import edit_of, edit_record

if TYPE_CHECKING:
    from tflint_gpu.findings import Edit, Finding
    from tflint_gpu.report.merge import Report


def edits_in(report: Report, finding: Finding) -> tuple[tuple[Edit, ...], str]:
    """Return the edits of the fix of `finding`, or none and the reason why not."""
    version = report.oldest

    def make() -> list[Any]:
        from tflint_gpu.fixes import edits_of

        made, reason = edits_of(finding, report.texts.raw, version)
        return [[edit_record(edit) for edit in made], reason]

    changes = finding.fix.changes if finding.fix else ()
    paths = {change.location.path for change in changes}
    # What is remembered of a file is what follows from its text alone.
    remember = report.texts.remembered if len(paths) == 1 else lambda _path, _name, make: make()
    edits, reason = remember(min(paths, default=""), f"edits {version} {changes}", make)
    return tuple(map(edit_of, edits)), reason
