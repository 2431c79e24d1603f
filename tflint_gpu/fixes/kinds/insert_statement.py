"""insert-statement: put a line of code before a statement, or first into the block behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, is_docstring, line_end, quoted, statement_at

if TYPE_CHECKING:
    import ast

    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Insert `text`, one line with names, before the statement at the site.

    With `where` as ``inside`` it comes first in that statement's block, behind a docstring.
    """
    script = site.script
    placed = statement_at(script, site.span)
    if site.parameters.get("where") != "inside":
        alone(script, placed)
        line = placed.first
        text, imports = site.text("text", line)
        text = quoted(script, text)
        start = script.offset(line, 0)
        return [*imports, Splice(start, start, f"{script.indent(line)}{text}{script.newline(line)}")]
    body: list[ast.stmt] = getattr(placed.node, "body", [])
    if not body or body[0].lineno == placed.node.lineno:
        raise DeclinedError("the block shares a line with its head")
    text, imports = site.text("text", body[0].lineno)
    line = body[0].lineno
    lead, newline = script.indent(line), script.newline(line)
    if is_docstring(body[0]):
        last = body[0].end_lineno or line
        start = line_end(script, last)
        ended = script.lines[last - 1].endswith(("\n", "\r"))
        return [*imports, Splice(start, start, f"{'' if ended else newline}{lead}{text}{newline}")]
    start = script.offset(min([line, *(item.lineno for item in getattr(body[0], "decorator_list", ()))]), 0)
    return [*imports, Splice(start, start, f"{lead}{text}{newline}")]
