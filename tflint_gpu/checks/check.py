"""The base of every rule: a check finds suspicions in a program and judges them by evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tflint_gpu.findings import Change, Finding, Fix, Impact, Location, Measure, Related, Severity, Verdict

if TYPE_CHECKING:
    from tflint_gpu.checks.pages import Page
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check concludes from evidence about one finding."""

    verdict: Verdict
    measures: tuple[Measure, ...] = ()
    impact: Impact | None = None
    severity: Severity | None = None
    message: str | None = None
    #: Why it stays unmeasured, in words that follow "not measured:".
    reason: str = ""


class Check:
    """One rule. Any half may be absent: the inherited one finds, judges or observes nothing.

    A subclass lives alone in ``tflint_gpu/checks/<factor>/<name>.py``; its page
    ``rules/<factor>/<name>.md`` holds code, severity and options. Nothing else registers it.
    """

    #: Texts of which a project must hold at least one for `find` to be able to yield anything.
    #: The file sieve is generated from these; an empty tuple says "every TensorFlow or Keras file".
    needles: ClassVar[tuple[str, ...]] = ()

    #: What of the cause only a GPU shows, in words that follow "only a GPU shows"; "" where a CPU shows enough.
    only_on_gpu: ClassVar[str] = ""

    #: The what-if runs that the rule judges by; see `asks` where not every finding does.
    experiments: ClassVar[tuple[str, ...]] = ()

    def __init__(self, page: Page, severity: Severity, options: dict[str, Any]) -> None:
        self.page = page
        self.severity = severity
        self.options = options

    def find(self, program: Program) -> Iterator[Finding]:
        """Static half: yield suspicions about `program`; whatever is unknown stays unaccused."""
        return iter(())

    def asks(self, finding: Finding) -> tuple[str, ...]:
        """Return the what-if runs that a trace should make for the sake of `finding`."""
        return self.experiments

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Trace half: say what `evidence` makes of `finding`; None where it cannot see the cause."""
        return None

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield what only a trace can see."""
        return iter(())

    def at(
        self,
        place: Call | Location,
        message: str,
        *,
        severity: Severity | None = None,
        qualname: str = "",
        related: tuple[Related, ...] = (),
        fix: Fix | str | None = None,
        **detail: Any,
    ) -> Finding:
        """Return a finding of this rule at `place`, as loud as the settings say unless `severity` lowers it.

        It lowers it where it is below the page's severity; a setting below that has the last word. `fix` is the
        repair, or the reason why a rule that has one has none here, in words for the report.
        """
        if severity is None or severity >= self.page.severity:
            severity = self.severity
        location = place if isinstance(place, Location) else place.location
        if not isinstance(place, Location) and not qualname:
            qualname = place.qualname
        return Finding(
            code=self.page.code,
            name=self.page.name,
            factor=self.page.factor,
            severity=min(severity, self.severity),
            message=message,
            location=location,
            related=related,
            fix=None if isinstance(fix, str) else fix,
            unfixable=fix if isinstance(fix, str) else "",
            qualname=qualname,
            detail=detail,
        )

    def change(
        self,
        kind: str,
        location: Location,
        title: str,
        *,
        safety: str = "safe",
        places: tuple[Location, ...] = (),
        **parameters: str,
    ) -> Fix:
        """Return a fix that makes the edit `kind` at what stands at `location`.

        For a fix of several edits make the `Fix` of several `Change`s.
        """
        return Fix(safety, title, (Change(kind, location, tuple(sorted(parameters.items())), places),))
