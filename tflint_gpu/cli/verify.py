"""The option ``--verify-fix`` of ``trace``: which fixes are tried, and on what text of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tflint_gpu.cli.run import LintResult, assemble, relinter
from tflint_gpu.config import Settings, closeness
from tflint_gpu.config_keys import ALL
from tflint_gpu.findings import Finding, Verdict

if TYPE_CHECKING:
    from tflint_gpu.fixes.apply import Relint
    from tflint_gpu.report.merge import Report
    from tflint_gpu.trace.evidence import Evidence
    from tflint_gpu.trace.session import TraceJob
    from tflint_gpu.trace.verify import Trial

#: What is not tried unless it was asked for by name: the trace has already said that nothing is to be gained.
_SETTLED = frozenset({Verdict.REFUTED, Verdict.MASKED, Verdict.NOT_EXERCISED})


def with_verified_fixes(
    job: TraceJob,
    result: LintResult,
    evidence: Evidence,
    settings: Settings,
    rules: Sequence[str],
    tell: Callable[[str], None],
) -> Evidence:
    """Return `evidence` with what running the program with the fixes of `rules` (``all``, or names) has shown."""
    from tflint_gpu.trace.verify import past_first_epoch, verify

    # A rule that is asked for by name may have nothing but a hint.
    report = assemble(result, evidence, replace(settings, pedantic=True))
    later = past_first_epoch(job, evidence.facts.get("epoch_steps"))
    if later is None:
        report = replace(report, findings=tuple(_without_caches(report.findings, tell)))
    trials = list(_trials(result, report, evidence, settings, rules, tell))
    if not trials:
        return evidence
    past = later.warmup if later is not None else 0
    return replace(evidence, verified_fixes=verify(later or job, trials, tell, past=past))


def _without_caches(findings: Sequence[Finding], tell: Callable[[str], None]) -> Iterator[Finding]:
    """Yield `findings`, those whose fix is a cache without it: that gives back nothing in the first epoch."""
    for finding in findings:
        changes = finding.fix.changes if finding.fix else ()
        if any(("method", "cache") in change.parameters for change in changes):
            tell(f"verify: {finding.location}: {finding.code} not tried: the trace saw no epoch end")
            yield replace(finding, fix=None)
        else:
            yield finding


def _trials(
    result: LintResult,
    report: Report,
    evidence: Evidence,
    settings: Settings,
    rules: Sequence[str],
    tell: Callable[[str], None],
) -> Iterator[Trial]:
    from tflint_gpu.fixes.apply import apply_fixes

    chosen: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if _is_asked(finding, rules) and finding.location.path in evidence.sources:
            chosen.setdefault(finding.code, []).append(replace(finding, verdict=Verdict.UNMEASURED))
    for rule in rules:
        if rule != ALL and not any(closeness(found[0], (rule,)) for found in chosen.values()):
            tell(f"verify: {rule} has no finding here with a fix")
    for findings in chosen.values():
        done = apply_fixes(
            findings,
            report.texts.raw,
            _only(findings[0].code, relinter(result, settings)),
            tensorflow=report.target.tensorflow,
            unsafe=True,
        )
        for refusal in done.declined:
            tell(f"verify: {refusal.finding.location}: {refusal.finding.code} not fixed: {refusal.reason}")
        declined = {refusal.finding.location for refusal in done.declined}
        fixed = [finding for finding in findings if finding.location not in declined]
        if done.changed and fixed:
            yield _trial(fixed, {change.path: (change.before, change.after) for change in done.changed})


def _only(rule: str, relint: Relint) -> Relint:
    """Leave out the fixes of other rules, whose findings may come to light: a trial tells of one rule."""
    return lambda contents: [
        found if found.code == rule else replace(found, fix=None) for found in relint(contents)
    ]


def _is_asked(finding: Finding, rules: Sequence[str]) -> bool:
    if finding.fix is None:
        return False
    named = closeness(finding, [rule for rule in rules if rule != ALL])
    return bool(named) or (ALL in rules and finding.verdict not in _SETTLED)


def _trial(fixed: Sequence[Finding], changed: dict[str, tuple[bytes, bytes]]) -> Trial:
    from tflint_gpu.trace.evidence import Spot
    from tflint_gpu.trace.verify import Trial

    safe = all(finding.fix is not None and finding.fix.safety == "safe" for finding in fixed)
    return Trial(
        fixed[0].code,
        fixed[0].name,
        "safe" if safe else "unsafe",
        tuple(Spot(f.location.path, f.location.line, f.location.cell, f.qualname) for f in fixed),
        {path: before for path, (before, _) in changed.items()},
        {path: after for path, (_, after) in changed.items()},
    )
