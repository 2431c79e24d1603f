"""The merge: what evidence makes of each finding, and the order in which a reader should meet them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tflint_gpu.findings import Finding, Location, Verdict
from tflint_gpu.report.texts import Texts
from tflint_gpu.source.texts import Error

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.checks.pages import Page
    from tflint_gpu.program.target import Target
    from tflint_gpu.report.court import Court
    from tflint_gpu.trace.evidence import Evidence

#: Which verdicts come first among findings of one impact and one severity.
_RANK = {
    Verdict.CONFIRMED: 0,
    Verdict.OBSERVED: 0,
    Verdict.UNMEASURED: 1,
    Verdict.NOT_EXERCISED: 2,
    Verdict.MINOR: 3,
    Verdict.MASKED: 4,
    Verdict.REFUTED: 5,
}


#: Which verdict says most of one finding, where several runs were traced.
_SAYS = {
    Verdict.CONFIRMED: 0,
    Verdict.OBSERVED: 0,
    Verdict.MINOR: 1,
    Verdict.MASKED: 2,
    Verdict.REFUTED: 3,
    Verdict.UNMEASURED: 4,
    Verdict.NOT_EXERCISED: 5,
}

#: A finding: the code of its rule, and its place.
Key = tuple[str, Location]


@dataclass(frozen=True)
class Report:
    """Everything a renderer needs: findings in order, with what surrounds them.

    `errors` are files that were not checked, `left_out` parts of files; `target` is that of the first project, and
    `targets` has those of all. `by` says which evidence a finding was judged by.
    """

    findings: tuple[Finding, ...]
    rules: tuple[Page, ...]
    target: Target
    files: int
    evidence: Evidence | None = None
    errors: tuple[Error, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[Error, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    texts: Texts = field(default_factory=Texts)
    targets: tuple[Target, ...] = ()
    by: Mapping[Key, Evidence] = field(default_factory=dict)

    @property
    def oldest(self) -> tuple[int, int]:
        """The oldest TensorFlow that any of the files is meant for: what it understands, the others do too."""
        return min(target.tensorflow for target in (*self.targets, self.target))

    def evidence_for(self, finding: Finding) -> Evidence | None:
        """Return the evidence that `finding` was judged by, None without a trace."""
        return self.by.get((finding.code, finding.location), self.evidence)


def merge(
    findings: Iterable[Finding],
    checks: Sequence[Check],
    evidence: Evidence | None = None,
    *,
    files: int,
    target: Target,
    errors: Iterable[Error] = (),
    suppressed: Iterable[Finding] = (),
    texts: Texts | None = None,
) -> Report:
    """Return the report on `findings`, judged by `evidence` where there is some.

    `checks` are the enabled rules, `files` the number of files that were checked, `errors` those that
    could not be.
    """
    texts = texts or Texts()
    kept = _unique(findings)
    problems = list(errors)
    notes: list[str] = []
    by: dict[Key, Evidence] = {}
    if evidence is not None:
        from tflint_gpu.report.court import Court

        courts = [Court(checks, each, texts) for each in (evidence, *evidence.others)]
        kept, by = _judged(kept, courts)
        problems += dict.fromkeys(problem for court in courts for problem in court.failures)
        notes += dict.fromkeys(note for court in courts for note in court.notes())
        first, *others = (court.evidence for court in courts)
        evidence = replace(first, others=tuple(others))
    return Report(
        findings=tuple(sorted(kept, key=_order)),
        rules=tuple(check.page for check in checks),
        target=target,
        files=files,
        evidence=evidence,
        errors=tuple(problems),
        notes=tuple(notes),
        suppressed=tuple(suppressed),
        texts=texts,
        by=by,
    )


def _judged(findings: Sequence[Finding], courts: Sequence[Court]) -> tuple[list[Finding], dict[Key, Evidence]]:
    """Return findings as the evidence of all `courts` leaves them, and which evidence each of them has from.

    What one run confirms is true, whatever others did not see: the verdict that says most stands, and of equal
    ones that with the largest impact.
    """
    best: dict[Key, tuple[Finding, Evidence]] = {}
    for court in courts:
        for finding in (*map(court.judged, findings), *court.observed(findings)):
            key = (finding.code, finding.location)
            if key not in best or _weight(finding) < _weight(best[key][0]):
                best[key] = (finding, court.evidence)
    return [finding for finding, _ in best.values()], {key: evidence for key, (_, evidence) in best.items()}


def _weight(finding: Finding) -> tuple[int, float, int]:
    share = finding.impact.step_share if finding.impact else 0.0
    return _SAYS[finding.verdict], -share, -finding.severity


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    """Keep one finding of a rule at a place, the loudest."""
    kept: dict[tuple[str, Location], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.location)
        if key not in kept or finding.severity > kept[key].severity:
            kept[key] = finding
    return list(kept.values())


def _order(finding: Finding) -> tuple[float, int, int, str, int, int, int, str]:
    share = finding.impact.step_share if finding.impact else 0.0
    where = finding.location
    return (
        -share,
        -finding.severity,
        _RANK[finding.verdict],
        where.path,
        where.cell or 0,
        where.line,
        where.column,
        finding.code,
    )
