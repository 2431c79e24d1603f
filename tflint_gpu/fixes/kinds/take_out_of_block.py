"""take-out-of-block: drop a ``with`` and keep what stands in it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment, line_end, outdented, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Remove the head of the ``with`` at the site and move its block out by one level.

    Declines where it has more than one item, gives its item a name, or a comment speaks of it.
    """
    script = site.script
    placed = statement_at(script, site.span)
    node = placed.node
    if not isinstance(node, ast.With) or len(node.items) != 1 or node.items[0].optional_vars:
        raise DeclinedError("no plain with block stands there")
    body = node.body[0]
    first = min([body.lineno, *(item.lineno for item in getattr(body, "decorator_list", ()))])
    head = "".join(script.lines[node.lineno - 1 : first - 1])
    above = script.lines[node.lineno - 2].strip() if node.lineno > 1 else ""
    if first == node.lineno:
        raise DeclinedError("the block shares a line with its head")
    if has_comment(head) or above.startswith("#"):
        raise DeclinedError("a comment speaks of the block; read it, then remove both")
    blanks = len(script.indent(first)) - len(script.indent(node.lineno))
    return [
        Splice(script.offset(node.lineno, 0), line_end(script, first - 1), ""),
        *outdented(script, first, placed.last, blanks),
    ]
