"""The format ``full``, for people: the trace's headline and tables, then each finding with code and figures."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.report.concise import place
from tflint_gpu.report.edits import edits_in
from tflint_gpu.report.figures import measure, percent, scatter
from tflint_gpu.report.fixes import offer, offered
from tflint_gpu.report.frame import frame
from tflint_gpu.report.merge import Report

_WIDTH = 100

_SEVERITIES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan", Severity.HINT: "white"}
_VERDICTS = {
    Verdict.CONFIRMED: "red",
    Verdict.OBSERVED: "red",
    Verdict.REFUTED: "green",
    Verdict.MASKED: "green",
    Verdict.MINOR: "green",
}


def render(report: Report, *, colour: bool = True) -> str:
    """Return the whole report as text; styled by ANSI codes with `colour`, which `click.echo` takes out again."""
    blocks = []
    if report.evidence is not None:
        from tflint_gpu.report.headline import headline
        from tflint_gpu.report.traced import summary

        for evidence in (report.evidence, *report.evidence.others):
            told = headline(evidence, report.findings)
            named = [f"run: {' '.join(evidence.command)}"] if report.evidence.others else []
            blocks.append("\n".join([_style(told, colour, bold=True), "", *named, *summary(evidence)]))
    blocks += ["\n".join(_finding(finding, report, colour)) for finding in report.findings]
    blocks.append(_closing(report))
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Finding, report: Report, colour: bool) -> Iterator[str]:
    where = finding.location
    yield " ".join(
        (
            _style(place(finding), colour, bold=True),
            finding.code,
            finding.name,
            _style(str(finding.severity), colour, fg=_SEVERITIES[finding.severity]),
            f"[{_style(str(finding.verdict), colour, fg=_VERDICTS.get(finding.verdict))}]",
        )
    )
    if where.path:
        yield from frame(report.texts.lines(where.path, where.cell), where)
    yield from _wrapped("", finding.message)
    if finding.evidence:
        yield from _wrapped("measured: ", "; ".join(map(measure, finding.evidence)) + _sample(report, finding))
    if finding.reason:
        yield from _wrapped("not measured: ", finding.reason)
    if finding.impact and finding.impact.step_share > 0:
        share = percent(finding.impact.step_share)
        yield from _wrapped("impact: ", f"gives back {share} of the step ({finding.impact.basis})")
    if finding.fix and offered(finding):
        edits, reason = edits_in(report, finding)
        flag = "--fix" if finding.fix.safety == "safe" else "--unsafe-fixes"
        if edits:
            yield from _wrapped("fix: ", f"{finding.fix.title} ({finding.fix.safety}, {flag})")
        else:
            yield from _wrapped("no fix: ", reason)
    elif finding.unfixable:
        yield from _wrapped("no fix: ", finding.unfixable)
    evidence = report.evidence_for(finding)
    if evidence and (tried := evidence.verified(finding.code, finding.location)):
        from tflint_gpu.report.traced import outcome

        yield from _wrapped("tried: ", outcome(tried))
    for other in finding.related:
        yield from _wrapped("see: ", f"{other.location}: {other.message}")


def _sample(report: Report, finding: Finding) -> str:
    evidence = report.evidence_for(finding)
    window = evidence.window if evidence else None
    return f" (n = {window.steps} steps{scatter(window.steps, window.spread)})" if window else ""


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        label + text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  " + " " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _closing(report: Report) -> str:
    """Return the last lines: counts, the versions that were assumed, and what to do next."""
    counts = Counter(finding.severity for finding in report.findings)
    found = [
        f"{counts[severity]} {severity}{'s' if counts[severity] > 1 and severity is not Severity.INFO else ''}"
        for severity in sorted(Severity, reverse=True)
        if counts[severity]
    ]
    files = f"{report.files} file{'' if report.files == 1 else 's'}"
    versions = ", ".join(map(str, report.targets or (report.target,)))
    closing = f"{', '.join(found) or 'No findings'} in {files}, for TensorFlow {versions}."
    told = offer(finding for finding in report.findings if finding.fix is None or edits_in(report, finding)[0])
    return f"{closing} {told[0].upper()}{told[1:]}" if told else closing


def _style(text: str, colour: bool, **how: Any) -> str:
    if not colour:
        return text
    import click

    return click.style(text, **how)
