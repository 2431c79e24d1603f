"""Where a trace shows that the code of a finding ran: of a function's decorators and ``def`` in its body."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from tflint_gpu.findings import Location
from tflint_gpu.source.notebooks import read_notebook
from tflint_gpu.source.texts import ReadError, Source, decode
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.report.texts import Texts


class Bodies:
    """The functions of the files behind the findings, each file read when a finding of it is first asked about."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._functions: dict[str, list[tuple[Location, Location]]] = {}

    def behind(self, where: Location) -> Location:
        """Return the lines that run when the code at `where` does.

        These are its own, but where it begins at a function's decorator or ``def``: their lines run where the
        function is made, whether anybody calls it or not. Then it is what `where` has of the body, or all of that.
        """
        if where.path not in self._functions:
            self._functions[where.path] = _functions(where.path, self._texts.raw(where.path))
        for head, body in self._functions[where.path]:
            if _begins_in(where, head):
                last = where.end_line if where.end_line >= body.line else body.end_line
                return replace(where, line=body.line, end_line=last)
        return where


def _functions(path: str, raw: bytes | None) -> list[tuple[Location, Location]]:
    """Return the decorators and the starts of the functions in a file, each with the place of its body."""
    if raw is None:
        return []
    try:
        source = read_notebook(path, raw) if path.endswith(".ipynb") else decode(path, raw)
        tree = source.parse()
    except ReadError:
        return []
    functions = (node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(head, _body(source, node)) for node in functions for head in _heads(source, node)]


def _heads(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Location]:
    start = source.place(node)
    return [
        replace(start, end_line=start.line, end_column=start.column),
        *(source.place(decorator) for decorator in node.decorator_list),
    ]


def _body(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Location:
    first, last = source.place(node.body[0]), source.place(node.body[-1])
    return replace(first, end_line=last.end_line, end_column=last.end_column)


def _begins_in(where: Location, head: Location) -> bool:
    first, last = (head.line, head.column), (head.end_line, head.end_column)
    return where.cell == head.cell and first <= (where.line, where.column) <= last
