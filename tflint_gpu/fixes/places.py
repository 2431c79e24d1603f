"""Finding what a fix is about: the one libcst node, read from the one statement that holds it."""

from __future__ import annotations

import ast
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    import libcst
    from libcst.metadata import CodeRange

#: Start and end of a range, each as (line from 1, column from 0), the end exclusive.
Span = tuple[tuple[int, int], tuple[int, int]]
NodeT = TypeVar("NodeT", bound="libcst.CSTNode")

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class DeclinedError(Exception):
    """A fix that cannot be made without risk; the message says why, in words for the reader of the report."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the characters `start` to `end` (offsets in the text, end exclusive) by `text`."""

    start: int
    end: int
    text: str


class Script:
    """Python text with its line starts and its tree. A notebook's text is that of all its cells, joined."""

    def __init__(self, text: str, tree: ast.Module, *, notebook: bool = False) -> None:
        self.text = text
        self.tree = tree
        self.notebook = notebook
        self.lines: list[str] = [line for line in _LINE.findall(text) if line]
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, in the order of `ast.walk`."""
        return nodes_of(self.tree)

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comments of the text by the offset they begin at, as far as the tokenizer can read it."""
        found = {}
        with suppress(SyntaxError, tokenize.TokenError):
            for token in tokenize.generate_tokens(iter(self.lines).__next__):
                if token.type == tokenize.COMMENT:
                    found[self.offset(*token.start)] = token.string
        return found

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place; `line` counts from 1, `column` from 0."""
        return self._starts[line - 1] + column

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line (from 1) and column (from 0) of an offset: `offset` backwards."""
        line = max(1, min(bisect_right(self._starts, offset), len(self.lines)))
        return line, offset - self._starts[line - 1]

    def newline(self, line: int) -> str:
        """Return the line end of `line`, or the file's first where that line has none."""
        for text in (self.lines[line - 1], *self.lines):
            if ending := text[len(text.rstrip("\r\n")) :]:
                return ending
        return "\n"

    def indent(self, line: int) -> str:
        """Return the blanks that `line` starts with."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\f"))]


@dataclass(frozen=True)
class Found(Generic[NodeT]):
    """A node in a script, the libcst module of the statement around it, and the places of all nodes in that.

    Lines that `span` returns count in the whole script.
    """

    node: NodeT
    module: libcst.Module
    first_line: int
    _ranges: dict[libcst.CSTNode, CodeRange]

    def span(self, node: libcst.CSTNode) -> Span:
        """Return start and end of `node`, which is in the same statement."""
        place: CodeRange = self._ranges[node]
        shift = self.first_line - 1
        return (place.start.line + shift, place.start.column), (place.end.line + shift, place.end.column)

    def code(self, node: libcst.CSTNode) -> str:
        """Return the text of `node` as it is laid out."""
        return self.module.code_for_node(node)


def find(script: Script, start: tuple[int, int], end: tuple[int, int], kind: type[NodeT]) -> Found[NodeT]:
    """Return the innermost node of that `kind` that ends at `end` and holds `start`.

    Places are (line from 1, column from 0). One closing parenthesis belongs to one call, so the end alone names
    it, whether `start` is where the chain begins or where the method's name stands. Only the statement around the
    place is given to libcst: positions of a whole file cost many times what its tree costs. Raises `DeclinedError`
    where no such node stands there.
    """
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    first, last = _statement(script, start[0], end[0])
    text = "".join(script.lines[first - 1 : last])
    if text[:1].isspace():
        text, first = f"if 1:\n{text}", first - 1
    try:
        module = libcst.parse_module(text)
    except libcst.ParserSyntaxError as problem:
        raise DeclinedError(f"libcst cannot read the statement ({problem.message})") from None
    ranges = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    for node, place in ranges.items():
        if (
            isinstance(node, kind)
            and (place.end.line + first - 1, place.end.column) == end
            and (place.start.line + first - 1, place.start.column) <= start
        ):
            return Found(node, module, first, dict(ranges))
    raise DeclinedError(f"no {kind.__name__.lower()} stands there any more")


def _statement(script: Script, first: int, last: int) -> tuple[int, int]:
    """Return the first and last line of the smallest run of whole statements around the lines `first` to `last`.

    Statements that share a line, through a semicolon or behind a colon, come together.
    """
    found = None
    bodies = [script.tree.body]
    while bodies:
        body = bodies.pop()
        spans = [_span(node) for node in body]
        touched = [span for span in spans if span[0] <= last and span[1] >= first]
        if not touched:
            continue
        start, end = touched[0][0], touched[-1][1]
        around = [index for index, span in enumerate(spans) if span[0] <= end and span[1] >= start]
        start, end = spans[around[0]][0], spans[around[-1]][1]
        line, column = script.lines[start - 1], body[around[0]].col_offset
        # An ``elif`` is an `ast.If` of its own, but no statement.
        if not line[:column].strip() and not line.startswith("elif", column):
            found = start, end
        bodies += [inner for index in around for inner in _bodies(body[index])]
    if found is None:
        raise DeclinedError("no statement stands there any more")
    return found


def _span(node: ast.stmt) -> tuple[int, int]:
    decorators = (item.lineno for item in getattr(node, "decorator_list", ()))
    return min([node.lineno, *decorators]), node.end_lineno or node.lineno


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks directly inside a statement, those of its handlers and cases among them."""
    for _, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
            for part in value:
                yield part.body
