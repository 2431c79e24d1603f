"""The merge: what evidence makes of each finding, and the order in which a reader should meet them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tflint_gpu.findings import Finding, Location, Verdict
from tflint_gpu.report.texts import Texts
from tflint_gpu.source.files import Error

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.checks.pages import Page
    from tflint_gpu.program.target import Target
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


@dataclass(frozen=True)
class Report:
    """Everything a renderer needs: findings in order, with what surrounds them.

    `errors` are files that were not checked, `left_out` parts of files; `target` is that of the first project, and
    `targets` has those of all.
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

    @property
    def oldest(self) -> tuple[int, int]:
        """The oldest TensorFlow that any of the files is meant for: what it understands, the others do too."""
        return min(target.tensorflow for target in (*self.targets, self.target))


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
    if evidence is not None:
        judge = _Court(checks, evidence, texts)
        kept = _unique([*map(judge.judged, kept), *judge.observed(kept)])
        problems += judge.failures
        notes += judge.notes()
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
    )


class _Court:
    """One evidence against all findings; remembers which files it could not be held against."""

    def __init__(self, checks: Sequence[Check], evidence: Evidence, texts: Texts) -> None:
        self.checks = {check.page.code: check for check in checks}
        self.evidence = evidence
        self.texts = texts
        self.failures: list[Error] = []
        self.stale: set[str] = set()
        self._fresh: dict[str, bool] = {}
        # Evidence of a run started in another folder names no file that exists here: it must not be read as
        # "this code never ran".
        self.elsewhere = bool(evidence.sources) and not any(
            texts.digest(path) is not None for path in evidence.sources
        )

    def judged(self, finding: Finding) -> Finding:
        """Return `finding` as the evidence leaves it."""
        where = finding.location
        if self.elsewhere or not self.is_fresh(where.path):
            return finding
        if self.never_ran(where):
            return finding.with_verdict(Verdict.NOT_EXERCISED)
        check = self.checks.get(finding.code)
        if check is None:
            return finding
        try:
            judgement = check.judge(finding, self.evidence)
        except Exception as problem:  # one rule's fault must not cost the whole report
            self._failed(check, "judging", where, problem)
            return finding
        if judgement is None or judgement.verdict is Verdict.UNMEASURED:
            measures = judgement.measures if judgement is not None else ()
            said = judgement.reason if judgement is not None else ""
            return replace(finding, evidence=measures, reason=said or self._unseen(check))
        return finding.with_verdict(
            judgement.verdict,
            evidence=judgement.measures,
            impact=judgement.impact,
            severity=None if judgement.severity is None else min(judgement.severity, check.severity),
            message=judgement.message,
        )

    def _unseen(self, check: Check) -> str:
        """Say why the trace leaves a finding of `check` unmeasured."""
        if "trace" not in check.page.phases:
            return "a trace does not judge this rule"
        if check.only_on_gpu and self.evidence.environment.device.kind != "gpu":
            return f"only a GPU shows {check.only_on_gpu}"
        return "the trace saw nothing of it, or too little to tell"

    def observed(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return what the trace alone shows, less what already stands at the same place."""
        seen: list[Finding] = []
        for check in self.checks.values():
            try:
                found = list(check.observe(self.evidence))
            except Exception as problem:
                self._failed(check, "observing", Location("", 1), problem)
                continue
            seen += [item for item in found if self._stands(item, findings)]
        return [
            item.with_verdict(Verdict.OBSERVED, evidence=item.evidence, impact=item.impact)
            if item.verdict is Verdict.UNMEASURED
            else item
            for item in seen
        ]

    def _stands(self, item: Finding, findings: Sequence[Finding]) -> bool:
        places = (item.location, *(related.location for related in item.related))
        return self.is_fresh(item.location.path) and not any(
            other.code == item.code and any(_overlap(other.location, place) for place in places)
            for other in findings
        )

    def is_fresh(self, path: str) -> bool:
        """Say whether `path` is as the trace saw it, as far as the evidence recorded that."""
        if path not in self._fresh:
            recorded = self.evidence.sources.get(path)
            self._fresh[path] = recorded is None or recorded == self.texts.digest(path)
            if not self._fresh[path]:
                self.stale.add(path)
        return self._fresh[path]

    def never_ran(self, where: Location) -> bool:
        """Say whether the trace recorded which lines ran, and `where` is not among them."""
        ran = self.evidence.ran(where)
        if ran is None and self.evidence.executed:
            # A module that the run never loaded; other files (requirements, settings) are never "run".
            return where.path.endswith((".py", ".ipynb")) and where.path not in self.evidence.sources
        return ran is False

    def _failed(self, check: Check, doing: str, where: Location, problem: Exception) -> None:
        sentence = (
            f"rule {check.page.code} {check.page.name} failed {doing} the evidence "
            f"({type(problem).__name__}: {problem}); leave it out with --ignore {check.page.code}"
        )
        self.failures.append(Error(where.path, where.line, sentence, where.cell))

    def notes(self) -> list[str]:
        """Return, in sentences, where the evidence could not be used."""
        if self.elsewhere:
            some = ", ".join(sorted(self.evidence.sources)[:3])
            sentence = "run the check in the folder where the trace was started"
            return [f"the evidence is of files that are not here ({some}): {sentence}"]
        return [
            f"{path} has changed since the trace, so its findings are unmeasured: trace again"
            for path in sorted(self.stale)
        ]


def _overlap(one: Location, other: Location) -> bool:
    return (
        one.path == other.path
        and one.cell == other.cell
        and one.line <= other.end_line
        and other.line <= one.end_line
    )


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
