"""Whole statements of a script: finding them, taking them out, and moving blocks in and out by one level."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflint_gpu.fixes.places import DeclinedError, Script, Span, Splice


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement where it stands: `body` is the block that holds it, `parent` what that block belongs to."""

    node: ast.stmt
    body: Sequence[ast.stmt]
    parent: ast.AST

    @property
    def first(self) -> int:
        """The line that it begins on, with its decorators."""
        decorators: list[ast.expr] = getattr(self.node, "decorator_list", [])
        return min([self.node.lineno, *(item.lineno for item in decorators)])

    @property
    def last(self) -> int:
        """The line that it ends on."""
        return self.node.end_lineno or self.node.lineno

    @property
    def index(self) -> int:
        """Its place in the block."""
        return next(index for index, node in enumerate(self.body) if node is self.node)


def statement_at(script: Script, span: Span) -> Placed:
    """Return the innermost statement around `span`; raises `DeclinedError` where there is none."""
    found: Placed | None = None
    blocks: list[tuple[ast.AST, list[ast.stmt]]] = [(script.tree, script.tree.body)]
    while blocks:
        parent, body = blocks.pop()
        for node in body:
            placed = Placed(node, body, parent)
            if (placed.first, 0) <= span[0] and span[1] <= end_of(script, node):
                if span[0] >= start_of(script, node) or placed.first < node.lineno:
                    found = placed
                blocks += [(node, block) for block in _blocks(node)]
    if found is None:
        raise DeclinedError("no statement stands there any more")
    return found


def start_of(script: Script, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
    """Return line and column (in characters) where `node` begins."""
    return node.lineno, _characters(script, node.lineno, node.col_offset)


def end_of(script: Script, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
    """Return line and column (in characters) where `node` ends."""
    line = node.end_lineno or node.lineno
    return line, _characters(script, line, node.end_col_offset or 0)


def text_of(script: Script, node: ast.expr) -> str:
    """Return the text of `node`."""
    return script.text[script.offset(*start_of(script, node)) : script.offset(*end_of(script, node))]


def is_docstring(node: ast.stmt) -> bool:
    """Say whether `node` is nothing but a string."""
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def alone(script: Script, placed: Placed) -> None:
    """Raise `DeclinedError` where another statement shares a line with this one."""
    line, column = start_of(script, placed.node)
    end_line, end_column = end_of(script, placed.node)
    before = script.lines[line - 1][:column] if line == placed.first else ""
    behind = script.lines[end_line - 1][end_column:].strip()
    if before.strip() or (behind and not behind.startswith("#")):
        raise DeclinedError("the statement shares its line with another; part them")


def commented(script: Script, placed: Placed) -> bool:
    """Say whether a comment speaks of the statement: on one of its lines, or right above it."""
    above = script.lines[placed.first - 2].strip() if placed.first > 1 else ""
    return above.startswith("#") or has_comment("".join(script.lines[placed.first - 1 : placed.last]))


def removed(script: Script, placed: Placed) -> Splice:
    """Return the splice that takes the statement's lines out.

    Raises `DeclinedError` where a comment speaks of it, it shares a line, or is all that its block holds.
    """
    alone(script, placed)
    if commented(script, placed):
        raise DeclinedError("a comment says why it is there; read it, then remove both")
    if len(placed.body) == 1:
        raise DeclinedError("its block holds nothing else; remove the block")
    return Splice(script.offset(placed.first, 0), line_end(script, placed.last), "")


def line_end(script: Script, line: int) -> int:
    """Return the offset behind `line` and its line end."""
    return script.offset(line, len(script.lines[line - 1]))


def unit(script: Script) -> str:
    """Return the blanks that one level of indentation is written with in this file, four where it has none."""
    for node in script.nodes:
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
            outer, inner = script.indent(node.lineno), script.indent(body[0].lineno)
            if inner.startswith(outer) and len(inner) > len(outer):
                return inner[len(outer) :]
    return "\t" if any(line.startswith("\t") for line in script.lines) else "    "


def quoted(script: Script, text: str) -> str:
    """Return `text` with the quotes that this file prefers around its strings."""
    single = script.text.count("'") > script.text.count('"')
    return text.replace('"', "'") if single and "'" not in text else text


def put_under(script: Script, first: int, last: int, head: str) -> list[Splice]:
    """Return the splices that put the lines `first` to `last` into a block with that `head`."""
    lead = script.indent(first)
    start = script.offset(first, len(lead))
    text = f"{head}{script.newline(first)}{lead}{unit(script)}"
    return [Splice(start, start, text), *indented(script, first + 1, last)]


def indented(script: Script, first: int, last: int) -> Iterator[Splice]:
    """Yield the splices that move the lines `first` to `last` in by one level; text inside strings stays."""
    step, texts = unit(script), _inside_strings(script, first, last)
    for line in range(first, last + 1):
        if line not in texts and script.lines[line - 1].strip():
            start = script.offset(line, 0)
            yield Splice(start, start, step)


def outdented(script: Script, first: int, last: int, blanks: int) -> list[Splice]:
    """Return the splices that move the lines `first` to `last` out by `blanks` characters where they have them."""
    found, texts = [], _inside_strings(script, first, last)
    for line in range(first, last + 1):
        lead = len(script.indent(line)) if script.lines[line - 1].strip() else 0
        if line not in texts and lead:
            start = script.offset(line, 0)
            found.append(Splice(start, start + min(blanks, lead), ""))
    return found


def has_comment(text: str) -> bool:
    """Say whether a comment is in `text`, a piece of a program; what cannot be read may be one."""
    return "#" in text and any(kind != "STRING" and "#" in written for kind, written in _tokens(text))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            yield tokenize.tok_name[token.type], token.string
    except (tokenize.TokenError, SyntaxError):
        yield "unreadable", text


def _inside_strings(script: Script, first: int, last: int) -> set[int]:
    """Return the lines among `first` to `last` that begin inside a string: their blanks belong to it."""
    inside: set[int] = set()
    begun: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(script.text, newline="").readline):
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name == "FSTRING_START":
                begun.append(token.start[0])
            elif name == "FSTRING_END" and begun:
                inside.update(range(begun.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        raise DeclinedError("the strings of this file cannot be told from its code") from None
    return {line for line in inside if first <= line <= last}


def _characters(script: Script, line: int, column: int) -> int:
    text = script.lines[line - 1]
    return column if text.isascii() else len(text.encode()[:column].decode())


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks directly inside a statement, those of its handlers and cases among them."""
    for _, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value[0], ast.ExceptHandler | ast.match_case):
            for part in value:
                yield part.body
