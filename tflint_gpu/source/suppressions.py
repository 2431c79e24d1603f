"""Comments that silence findings: which lines they cover, for which rules, and which of them did nothing."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tflint_gpu.findings import Finding
from tflint_gpu.source.files import SourceFile
from tflint_gpu.source.texts import Error, ReadError, Source

_DIRECTIVE = re.compile(r"#\s*(tflint[-_]?gpu\s*:?)\s*([\w-]*)\s*(\[[^\]#]*\]?)?([^#]*)", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa\s*:\s*((?:[A-Z]+\d+[,\s]*)+)", re.IGNORECASE)
_SKIPPED = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
_KINDS = ("ignore", "disable", "enable", "ignore-file")


@dataclass
class Suppression:
    """One comment. It covers the joined lines `first` to `last` of its source, for `rules` or, if empty, for all.

    `line` and `cell` are where the comment stands. `used` gathers the references that silenced something.
    """

    path: str
    line: int
    cell: int | None
    kind: str
    rules: tuple[str, ...]
    first: int = 0
    last: int = 0
    used: set[str] = field(default_factory=set)


class Suppressions:
    """All suppressions of a run's files; remembers which were used."""

    def __init__(self, files: Iterable[SourceFile], closeness: Callable[[Finding, Sequence[str]], int]) -> None:
        """Read the suppressions of `files`; `closeness` says how closely references name a finding's rule."""
        self._closeness = closeness
        self._sources: dict[str, list[tuple[Source, list[Suppression]]]] = {}
        self.malformed: list[Error] = []
        for file in files:
            try:
                source = file.read()
            except ReadError:
                continue
            self._sources[file.path] = [
                (part, list(read_suppressions(part, self.malformed))) for part in (source, *source.written)
            ]

    def __iter__(self) -> Iterator[Suppression]:
        for parts in self._sources.values():
            for _, suppressions in parts:
                yield from suppressions

    def silences(self, finding: Finding) -> bool:
        """Say whether a comment silences `finding`."""
        silent = False
        where = finding.location
        for source, suppressions in self._sources.get(where.path, ()):
            if where.cell is not None and all(cell.number != where.cell for cell in source.cells):
                continue
            line = source.joined(where.line, where.cell)
            for suppression in suppressions:
                if suppression.first <= line <= suppression.last:
                    silent |= self._matches(suppression, finding)
        return silent

    def _matches(self, suppression: Suppression, finding: Finding) -> bool:
        if not suppression.rules:
            suppression.used.add("")
            return True
        matching = {rule for rule in suppression.rules if self._closeness(finding, (rule,))}
        suppression.used |= matching
        return bool(matching)

    def unused(self) -> Iterator[tuple[Suppression, str]]:
        """Yield every comment that silenced nothing, once for each reference in it ("" for a bare one)."""
        for suppression in self:
            for rule in suppression.rules or ("",):
                if rule not in suppression.used:
                    yield suppression, rule


def read_suppressions(source: Source, malformed: list[Error]) -> Iterator[Suppression]:
    """Yield the suppressions in `source`; directives that are none of ours go to `malformed`."""
    open_ranges: list[Suppression] = []
    last_line = len(source.lines)
    for comment, line, first, last in _comments(source):
        cell, own_line = source.locate(line)
        malformed += [Error(source.path, own_line, wrong, cell, fatal=False) for wrong in _faults(comment)]
        for kind, rules in _directives(comment):
            if kind == "enable":
                open_ranges = _closed(open_ranges, rules, line)
                continue
            span = {"disable": (line, last_line), "ignore-file": (1, last_line)}.get(kind, (first, last))
            # One range a rule: each may be enabled again on its own.
            parts: list[tuple[str, ...]] = [(rule,) for rule in rules] if kind == "disable" else []
            for part in parts or [rules]:
                suppression = Suppression(source.path, own_line, cell, kind, part, *span)
                if kind == "disable":
                    open_ranges.append(suppression)
                yield suppression


def _closed(ranges: list[Suppression], rules: tuple[str, ...], line: int) -> list[Suppression]:
    """End the ranges that an ``enable`` at `line` names, and return those still open."""
    left = []
    for suppression in ranges:
        if not rules or set(suppression.rules) & set(rules):
            suppression.last = line
        else:
            left.append(suppression)
    return left


def _directives(comment: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in _DIRECTIVE.finditer(comment):
        if not _fault(*match.groups(default="")):
            yield match[2], _words(match[3] or "")
    for match in _NOQA.finditer(comment):
        codes = tuple(code for code in re.split(r"[,\s]+", match[1].upper()) if code.startswith("TFG"))
        if codes:
            yield "ignore", codes


def _faults(comment: str) -> Iterator[str]:
    return filter(None, (_fault(*match.groups(default="")) for match in _DIRECTIVE.finditer(comment)))


def _fault(marker: str, kind: str, rules: str, rest: str) -> str:
    """Say what is wrong with a comment meant for us, "" where it is well or only speaks of the program.

    Half a list silences nothing: read as none at all, it would silence every rule.
    """
    if marker != "tflint-gpu:":
        if kind not in _KINDS:
            return ""  # prose
        return f"{marker.strip()!r} is no marker of a suppression; write '# tflint-gpu: {kind}[RULE]'"
    if kind not in _KINDS:
        return f"unknown directive {kind!r} in a tflint-gpu comment; use {', '.join(_KINDS)}"
    if rules and not rules.endswith("]"):
        return f"the list of rules is not closed; write '# tflint-gpu: {kind}[RULE,RULE]'"
    if rules and not _words(rules):
        return f"the list of rules is empty; name some, or leave the brackets off to mean all: '{kind}[RULE]'"
    if not rules and re.match(r"\s*(?:[(:={]|TFG\d)", rest, re.IGNORECASE):
        return f"rules stand in square brackets; write '# tflint-gpu: {kind}[RULE,RULE]'"
    return ""


def _words(brackets: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in brackets.strip("[]").split(",") if word.strip())


def _comments(source: Source) -> Iterator[tuple[str, int, int, int]]:
    """Yield every comment with its joined line and the lines of the statement that it stands on, or above."""
    if not source.cells:
        yield from _comments_in(source.text, 0)
        return
    for cell in source.cells:
        text = "\n".join(source.lines[cell.first - 1 : cell.first - 1 + cell.lines])
        yield from _comments_in(text, cell.first - 1)


def _comments_in(text: str, above: int) -> Iterator[tuple[str, int, int, int]]:
    pending: list[tuple[str, int]] = []
    start, fresh, decorated = 0, True, False
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                pending.append((token.string, token.start[0]))
            elif token.type == tokenize.NEWLINE:
                if not decorated:
                    for comment, line in pending:
                        yield comment, above + line, above + min(start, line), above + max(token.start[0], line)
                    pending, start = [], 0
                fresh = True
            elif token.type not in _SKIPPED:
                # A decorator belongs to the header that follows it.
                decorated = token.string == "@" if fresh else decorated
                start, fresh = start or token.start[0], False
    except (tokenize.TokenError, SyntaxError):
        pass
    for comment, line in pending:
        yield comment, above + line, above + line, above + line
