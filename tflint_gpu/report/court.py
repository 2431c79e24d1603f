"""What one evidence makes of each finding, and what it shows by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tflint_gpu.findings import Finding, Location, Verdict
from tflint_gpu.report.bodies import Bodies
from tflint_gpu.report.texts import Texts
from tflint_gpu.source.texts import Error
from tflint_gpu.trace.follow import follow

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.trace.evidence import Evidence


class Court:
    """One evidence against all findings; remembers which files it could not be held against.

    `evidence` is what was traced, its lines where they stand today.
    """

    def __init__(self, checks: Sequence[Check], evidence: Evidence, texts: Texts) -> None:
        followed = follow(evidence, texts.raw)
        self.checks = {check.page.code: check for check in checks}
        self.evidence = followed.evidence
        self.edits = followed.edits
        self.texts = texts
        self.bodies = Bodies(texts)
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
        if self.elsewhere or not self.still_stands(finding):
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
        path = item.location.path
        if path in self.edits and not self.edits[path].only_moved:
            return False  # it speaks of the step as a whole, and that is another one now
        return self.is_fresh(path) and not any(
            other.code == item.code and any(_overlap(other.location, place) for place in places)
            for other in findings
        )

    def still_stands(self, finding: Finding) -> bool:
        """Say whether the lines that `finding` speaks of are as the trace saw them."""
        places = (finding.location, *(related.location for related in finding.related))
        return self.is_fresh(finding.location.path) and all(
            self.edits[place.path].stands(place) for place in places if place.path in self.edits
        )

    def is_fresh(self, path: str) -> bool:
        """Say whether `path` is as the trace saw it, or can be followed line by line; unrecorded files are."""
        if path not in self._fresh:
            recorded = self.evidence.sources.get(path)
            same = recorded is None or recorded == self.texts.digest(path)
            self._fresh[path] = same or path in self.edits
            if not self._fresh[path]:
                self.stale.add(path)
        return self._fresh[path]

    def never_ran(self, where: Location) -> bool:
        """Say whether the trace recorded which lines ran, and those of the code at `where` are not among them."""
        if not self.evidence.executed:
            return False
        ran = self.evidence.ran(self._shown_by(where))
        if ran is None:
            # A module that the run never loaded; other files (requirements, settings) are never "run".
            return where.path.endswith((".py", ".ipynb")) and where.path not in self.evidence.sources
        return not ran

    def _shown_by(self, where: Location) -> Location:
        body, edit = self.bodies.behind(where), self.edits.get(where.path)
        # A body that was edited since has lost the lines that ran.
        return body if edit is None or edit.stands(body) else where

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
        edited = sorted(path for path, edit in self.edits.items() if not edit.only_moved)
        changed = "has changed since the trace"
        return [
            *(f"{path} {changed}: verdicts stand where its lines do, the rest is unmeasured" for path in edited),
            *(f"{path} {changed}, so its findings are unmeasured: trace again" for path in sorted(self.stale)),
        ]


def _overlap(one: Location, other: Location) -> bool:
    return (
        one.path == other.path
        and one.cell == other.cell
        and one.line <= other.end_line
        and other.line <= one.end_line
    )
