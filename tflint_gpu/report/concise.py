"""The format ``concise``: one line a finding, for editors and grep."""

from __future__ import annotations

from tflint_gpu.findings import Finding
from tflint_gpu.report.merge import Report


def render(report: Report) -> str:
    """Return ``path:line:col: CODE name severity [verdict] message`` lines, then the trace's headline."""
    lines = [line(finding) for finding in report.findings]
    if report.evidence is not None:
        from tflint_gpu.report.headline import headline

        lines += [headline(each, report.findings) for each in (report.evidence, *report.evidence.others)]
    return "".join(f"{text}\n" for text in lines)


def line(finding: Finding) -> str:
    """Return the one line of `finding`."""
    message = " ".join(finding.message.split())
    return f"{place(finding)}: {finding.code} {finding.name} {finding.severity} [{finding.verdict}] {message}"


def place(finding: Finding) -> str:
    """Return where `finding` stands; what only the trace saw, and without a line, stands at ``trace``."""
    return str(finding.location) if finding.location.path else "trace"
