"""One lasting name for a finding, for baselines, SARIF and GitLab: it survives moved lines and new neighbours."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from tflint_gpu.findings import Finding, Location
from tflint_gpu.report.texts import Texts
from tflint_gpu.source.trees import nodes_of

_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
)


def fingerprints(findings: Iterable[Finding], texts: Texts) -> dict[Finding, str]:
    """Return a fingerprint for each finding: 32 hex digits, each once.

    It hashes the rule, the path, the enclosing function, the statement without comments and layout, and the count
    among equals in the order of the file.
    """
    spans: dict[tuple[str, int | None], list[tuple[int, int]]] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    named: dict[Finding, str] = {}
    for finding in sorted(findings, key=lambda item: (item.location, item.code)):
        where = finding.location
        statement = texts.remembered(
            where.path,
            f"statement {where.cell} {where.line} {where.end_line}",
            partial(_statement, where, texts, spans),
        )
        identity = (finding.code, where.path, finding.qualname, statement)
        seen[identity] += 1
        text = "\0".join((*identity, str(seen[identity])))
        hashed = hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=16)
        named[finding] = hashed.hexdigest()
    return named


def _statement(where: Location, texts: Texts, spans: dict[tuple[str, int | None], list[tuple[int, int]]]) -> str:
    """Return the normal text of the statement at `where`; `spans` has those of the files that were looked at."""
    lines = texts.lines(where.path, where.cell)
    key = (where.path, where.cell)
    if key not in spans:
        spans[key] = _statements(lines)
    return _normal(_enclosing(lines, spans[key], where.line, where.end_line))


def _statements(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return first and last line of every statement; of a compound one, of its header alone."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):  # a cell with magics: the finding's own lines must do
        return []
    spans = []
    for node in nodes_of(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            spans.append((node.lineno, max(node.lineno, last)))
    return spans


def _enclosing(lines: Sequence[str], spans: Sequence[tuple[int, int]], first: int, last: int) -> str:
    around = [(start, end) for start, end in spans if start <= first <= end]
    start, end = max(around, default=(first, last))
    return "\n".join(lines[start - 1 : end])


def _normal(text: str) -> str:
    kept = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
            kept += [] if token.type in _LAYOUT else [token.string]
    except (tokenize.TokenError, SyntaxError):
        # A header or a cell's line may end in the middle of a bracket: what was read up to there is as lasting.
        pass
    # Joined without blanks, because Python 3.12 and later cut f-strings into more tokens.
    return "".join("".join(kept).split())
