"""Applying fixes: in rounds, each proven by linting the result, so that only what holds is left to write."""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tflint_gpu.findings import Edit, Finding, Severity, Verdict
from tflint_gpu.fixes.document import Document, merged, open_document, overlaps
from tflint_gpu.fixes.places import DeclinedError

#: Lints the project with some files' bytes replaced, and returns every finding, hints among them.
Relint = Callable[[Mapping[str, bytes]], Sequence[Finding]]

#: Fixes that overlap wait for the next round; a chain of more than these is left to the next run.
MAX_ROUNDS = 8

#: A finding and the edits that fix it.
_Plan = tuple[Finding, tuple[Edit, ...]]

_COSTS_NOTHING = frozenset({Verdict.REFUTED, Verdict.MASKED})


@dataclass(frozen=True)
class Changed:
    """A file before and after, with the findings that are gone."""

    path: str
    before: bytes
    after: bytes
    fixed: tuple[Finding, ...]


@dataclass(frozen=True)
class Refusal:
    """A finding whose fix was not made, and why, in words for the report."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class FixReport:
    """What `apply_fixes` did: changed files, fixes it declined, and the findings that are left."""

    changed: tuple[Changed, ...]
    declined: tuple[Refusal, ...]
    remaining: tuple[Finding, ...]

    @property
    def fixed(self) -> tuple[Finding, ...]:
        """Every finding that is gone."""
        return tuple(finding for change in self.changed for finding in change.fixed)

    def diff(self) -> str:
        """Return all changes as a unified diff that ``patch -p1`` and ``git apply`` take."""
        return "".join(_diff(change) for change in self.changed)


def edits_of(
    finding: Finding, read: Callable[[str], bytes | None], tensorflow: tuple[int, int]
) -> tuple[tuple[Edit, ...], str]:
    """Return the edits of the finding's fix, or none and the reason why not. `read` gives the bytes of a path."""
    if finding.fix is None:
        return (), finding.unfixable or "this rule has no fix here"
    made: list[Edit] = []
    try:
        for change in finding.fix.changes:
            path = change.location.path
            raw = read(path)
            if raw is None:
                return (), f"{path} cannot be read"
            made += (edit for edit in open_document(path, raw).edits(change, tensorflow) if edit not in made)
        return merged(made), ""
    except DeclinedError as problem:
        return (), str(problem)


def apply_fixes(
    findings: Sequence[Finding],
    read: Callable[[str], bytes | None],
    relint: Relint,
    *,
    tensorflow: tuple[int, int],
    unsafe: bool = False,
) -> FixReport:
    """Return what the fixes of `findings` make of their files; nothing is written, see `tflint_gpu.fixes.write`.

    `read` gives the bytes of a path. Safe fixes are made, with `unsafe` the others too. A file changes only where
    the result parses, the finding is gone and no new one came that is as grave. What the trace refuted or the
    runtime repairs by itself is left alone.
    """
    session = _Session(read, relint, tensorflow, unsafe, list(findings))
    if any(finding.fix for finding in findings):
        session.begin()
    for finding in findings:
        session.admit(finding)
    for _ in range(MAX_ROUNDS):
        if not session.round():
            break
    return session.report()


@dataclass(frozen=True, slots=True)
class _Key:
    """A finding by its rule and the end of its place, which follows the edits made in front of it."""

    code: str
    path: str
    cell: int | None
    line: int
    column: int

    @classmethod
    def of(cls, finding: Finding) -> _Key:
        where = finding.location
        return cls(finding.code, where.path, where.cell, where.end_line, where.end_column)

    def moved(self, old: Document, new: Document, edits: Sequence[Edit]) -> _Key:
        """Return where this stands once `edits` have turned `old` into `new`."""
        line, column = old.follow(new, edits, (self.line, self.column, self.cell))
        return replace(self, line=line, column=column)


@dataclass
class _Session:
    """The state between rounds: bytes as they are now, and findings as the last lint left them."""

    read: Callable[[str], bytes | None]
    relint: Relint
    tensorflow: tuple[int, int]
    unsafe: bool
    findings: list[Finding]
    before: dict[str, bytes] = field(default_factory=dict)
    now: dict[str, bytes] = field(default_factory=dict)
    fixed: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    #: None for a finding that nobody asked to fix: a hint, say, that the report does not show.
    refused: dict[_Key, Refusal | None] = field(default_factory=dict)
    #: Files in which fixes did not hold together.
    one_at_a_time: set[str] = field(default_factory=set)
    #: How many fixes to make at once.
    most: int = sys.maxsize
    held_back: bool = False

    def begin(self) -> None:
        """Take stock: every finding counts when looking for new ones, though only those given are to be fixed."""
        asked = {_Key.of(finding) for finding in self.findings if finding.fix}
        self.findings = list(self.relint({}))
        self.refused = {_Key.of(item): None for item in self.findings if _Key.of(item) not in asked}

    def admit(self, finding: Finding) -> None:
        """Decline the fix of `finding` where it is not one to make."""
        if finding.fix and finding.verdict in _COSTS_NOTHING:
            self.decline(finding, "the trace shows that it costs nothing here")
        elif finding.fix and finding.fix.safety != "safe" and not self.unsafe:
            self.decline(finding, "the fix may change results; --unsafe-fixes makes it")

    def decline(self, finding: Finding, reason: str) -> None:
        """Note that the fix of `finding` is not made, wherever the finding moves to."""
        self.refused.setdefault(_Key.of(finding), Refusal(finding, reason))

    def bytes_of(self, path: str) -> bytes | None:
        """Return the bytes of `path` as they are now."""
        if path not in self.now:
            raw = self.read(path)
            if raw is None:
                return None
            self.before[path] = self.now[path] = raw
        return self.now[path]

    def round(self) -> bool:
        """Make every fix that clashes with no other and holds; say whether another round may find more to do."""
        while plans := self._plans():
            blamed = self._try(plans)
            if blamed:
                self._blame(plans, blamed)
                continue
            self.most = sys.maxsize
            if not self.held_back:
                return True
        return False

    def _blame(self, plans: Sequence[_Plan], reasons: Mapping[str, str]) -> None:
        """Refuse each fix that is alone in one of the paths that did not come out well; part those that are not.

        Where no fix touches a file that got a new finding, the culprit is sought by halves.
        """
        touching = {path: [plan for plan in plans if path in _paths(plan)] for path in sorted(reasons)}
        touched = any(touching.values())
        if not touched and len(plans) > 1:
            self.most = len(plans) // 2
            return
        self.most = sys.maxsize
        for path, suspects in touching.items() if touched else [(min(reasons), plans)]:
            if len(suspects) == 1:
                self.decline(suspects[0][0], reasons[path])
            for plan in suspects:
                self.one_at_a_time |= _paths(plan)

    def _plans(self) -> list[_Plan]:
        """Return findings with the edits that fix them, none touching another's; note if some have to wait."""
        plans: list[_Plan] = []
        begun: set[str] = set()
        self.held_back = False
        for finding in self.findings:
            if finding.fix is None or _Key.of(finding) in self.refused:
                continue
            edits, reason = edits_of(finding, self.bytes_of, self.tensorflow)
            if not edits:
                self.decline(finding, reason)
                continue
            paths = _paths((finding, edits))
            if begun & paths & self.one_at_a_time or len(plans) == self.most:
                self.held_back = True
            elif not any(overlaps(edits, others) for _, others in plans):
                plans.append((finding, edits))
                begun |= paths
        return plans

    def _try(self, plans: Sequence[_Plan]) -> dict[str, str]:
        """Make the fixes of `plans` if all hold, and return nothing; else what tells otherwise, by its path."""
        edits: dict[str, list[Edit]] = defaultdict(list)
        for _, its in plans:
            for edit in its:
                edits[edit.location.path].append(edit)
        old = {path: open_document(path, self.now[path]) for path in edits}
        new = {path: made for path, its in edits.items() if (made := _edited(old[path], its))}
        if unreadable := edits.keys() - new.keys():
            return dict.fromkeys(unreadable, "the changed file could not be read or written")
        changed = {path: document.raw for path, document in new.items()}
        after = list(self.relint({**self._different(), **changed}))
        if worse := self._worse(plans, after):
            return worse
        self.now.update(changed)

        def moved(key: _Key) -> _Key:
            return key.moved(old[key.path], new[key.path], edits[key.path]) if key.path in edits else key

        known = {moved(_Key.of(finding)) for finding in self.findings}
        self.refused = {moved(key): refusal for key, refusal in self.refused.items()}
        for finding in after:
            if _Key.of(finding) in known:
                continue
            # A hint that shows up with a fix has been shown to nobody, so nobody has asked to fix it.
            if finding.severity is Severity.HINT:
                self.refused.setdefault(_Key.of(finding), None)
            else:
                self.admit(finding)
        self.findings = after
        for finding, its in plans:
            # A finding counts once, in its own file where that is among those changed.
            paths = [edit.location.path for edit in its]
            self.fixed[finding.location.path if finding.location.path in paths else paths[0]].append(finding)
        return {}

    def _worse(self, plans: Sequence[_Plan], after: Sequence[Finding]) -> dict[str, str]:
        """Say what speaks against `plans`, after which the lint finds `after`, by the path it stands in."""
        due = _counts(self.findings) - _counts(finding for finding, _ in plans)
        now = _counts(after)
        worse: dict[str, str] = {}
        for finding in after:
            path = finding.location.path
            if path in worse or now[finding.code, path] <= due[finding.code, path]:
                continue
            suspects = [fixed for fixed, edits in plans if path in _paths((fixed, edits))]
            suspects = suspects or [fixed for fixed, _ in plans]
            if any(finding.code == fixed.code for fixed in suspects):
                worse[path] = "the changed file would still have the finding"
            # What is quieter was hidden by what was fixed, and is no fault of the fix; nor is a hint.
            elif finding.severity >= max(Severity.INFO, min(fixed.severity for fixed in suspects)):
                worse[path] = f"the changed file would have {finding.code} ({finding.name}) instead"
        return worse

    def _different(self) -> dict[str, bytes]:
        return {path: raw for path, raw in self.now.items() if raw != self.before[path]}

    def report(self) -> FixReport:
        """Return what came of it."""
        changed = (
            Changed(path, self.before[path], raw, tuple(self.fixed[path]))
            for path, raw in sorted(self._different().items())
        )
        refusals = tuple(refusal for refusal in self.refused.values() if refusal is not None)
        return FixReport(tuple(changed), refusals, tuple(self.findings))


def _edited(document: Document, edits: Sequence[Edit]) -> Document | None:
    """Return `document` with `edits` made, None where that could not be read or written."""
    try:
        return open_document(document.path, document.apply(edits))
    except DeclinedError:
        return None


def _paths(plan: _Plan) -> set[str]:
    finding, edits = plan
    return {finding.location.path, *(edit.location.path for edit in edits)}


def _counts(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    """Return how often each rule stands in each file; what is said of one place twice counts once."""
    places = {(finding.code, finding.location) for finding in findings}
    return Counter((code, location.path) for code, location in places)


def _diff(change: Changed) -> str:
    lines = difflib.unified_diff(
        _lines(change, change.before),
        _lines(change, change.after),
        f"a/{change.path}",
        f"b/{change.path}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(change: Changed, raw: bytes) -> list[str]:
    encoding = open_document(change.path, change.before).sources[0].encoding
    # Only a line feed ends a line for `patch`.
    return re.findall(r"[^\n]*\n|[^\n]+", raw.decode(encoding))
