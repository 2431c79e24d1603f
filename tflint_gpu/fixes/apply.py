"""Applying fixes: in rounds, each proven by linting the result, so that only what holds is left to write."""

from __future__ import annotations

import difflib
import re
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
    the result parses, the finding is gone and no new one came. What the trace refuted or the runtime repairs by
    itself is left alone.
    """
    session = _Session(read, relint, tensorflow, list(findings))
    if any(finding.fix for finding in findings):
        session.begin()
    for finding in findings:
        if finding.fix and finding.verdict in _COSTS_NOTHING:
            session.decline(finding, "the trace shows that it costs nothing here")
        elif finding.fix and finding.fix.safety != "safe" and not unsafe:
            session.decline(finding, "the fix may change results; --unsafe-fixes makes it")
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
    findings: list[Finding]
    before: dict[str, bytes] = field(default_factory=dict)
    now: dict[str, bytes] = field(default_factory=dict)
    fixed: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    #: None for a finding that nobody asked to fix: a hint, say, that the report does not show.
    refused: dict[_Key, Refusal | None] = field(default_factory=dict)

    def begin(self) -> None:
        """Take stock: every finding counts when looking for new ones, though only those given are to be fixed."""
        asked = {_Key.of(finding) for finding in self.findings if finding.fix}
        self.findings = list(self.relint({}))
        self.refused = {_Key.of(item): None for item in self.findings if _Key.of(item) not in asked}

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
        """Make every fix that clashes with no other; say whether another round may find more to do."""
        paths = sorted({finding.location.path for finding, _ in self._plans()})
        if paths:
            self._settle(paths)
        return bool(paths)

    def _settle(self, paths: Sequence[str]) -> None:
        """Make the fixes of the findings in `paths`; where the whole does not hold, leave out the culprits."""
        plans = self._plans(paths)
        if not plans or self._try(plans):
            return
        if len(paths) > 1:
            half = len(paths) // 2
            self._settle(paths[:half])
            self._settle(paths[half:])
            return
        for _ in range(len(plans)):
            plans = self._plans(paths)[:1]
            if plans and not self._try(plans):
                self.decline(plans[0][0], "the changed file would still have the finding, or a new one")

    def _plans(self, paths: Sequence[str] | None = None) -> list[tuple[Finding, tuple[Edit, ...]]]:
        """Return findings in `paths` (None: anywhere) with the edits that fix them, none touching another's."""
        plans: list[tuple[Finding, tuple[Edit, ...]]] = []
        for finding in self.findings:
            elsewhere = paths is not None and finding.location.path not in paths
            if elsewhere or finding.fix is None or _Key.of(finding) in self.refused:
                continue
            edits, reason = edits_of(finding, self.bytes_of, self.tensorflow)
            if not edits:
                self.decline(finding, reason)
            elif not any(overlaps(edits, others) for _, others in plans):
                plans.append((finding, edits))
        return plans

    def _try(self, plans: Sequence[tuple[Finding, tuple[Edit, ...]]]) -> bool:
        edits: dict[str, list[Edit]] = defaultdict(list)
        for _, its in plans:
            for edit in its:
                edits[edit.location.path].append(edit)
        try:
            old = {path: open_document(path, self.now[path]) for path in edits}
            changed = {path: old[path].apply(its) for path, its in edits.items()}
            new = {path: open_document(path, raw) for path, raw in changed.items()}
        except DeclinedError:
            return False
        after = list(self.relint({**self._different(), **changed}))
        due = _counts(self.findings) - _counts(finding for finding, _ in plans)
        # A hint that shows up behind what was louder is no fault of the fix, but for one of the rule itself.
        rules = {finding.code for finding, _ in plans}
        told = [finding for finding in after if finding.severity > Severity.HINT or finding.code in rules]
        if any(count > due[key] for key, count in _counts(told).items()):
            return False
        self.now.update(changed)

        def moved(key: _Key) -> _Key:
            return key.moved(old[key.path], new[key.path], edits[key.path]) if key.path in edits else key

        known = {moved(_Key.of(finding)) for finding in self.findings}
        self.refused = {moved(key): refusal for key, refusal in self.refused.items()}
        for finding in after:
            # A hint that shows up with a fix has been shown to nobody, so nobody has asked to fix it.
            if finding.severity is Severity.HINT and _Key.of(finding) not in known:
                self.refused.setdefault(_Key.of(finding), None)
        self.findings = after
        for finding, its in plans:
            # A finding counts once, in its own file where that is among those changed.
            paths = [edit.location.path for edit in its]
            self.fixed[finding.location.path if finding.location.path in paths else paths[0]].append(finding)
        return True

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


def _counts(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter((finding.code, finding.location.path) for finding in findings)


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
