"""hoist: move a statement out of the loop that repeats it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import free_names, names_bound, names_read
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, commented, line_end, outdented, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site
    from tflint_gpu.fixes.statements import Placed


def edit(site: Site) -> list[Splice]:
    """Move the statement at the site before the loop at its other place, which holds it directly.

    Declines where it reads what the loop sets, where the loop sets what it makes once more, and where a comment
    speaks of it.
    """
    script = site.script
    placed, loop = statement_at(script, site.span), statement_at(script, site.others[0])
    if not isinstance(loop.node, ast.For | ast.While) or placed.parent is not loop.node:
        raise DeclinedError("it does not stand in the loop itself; move it by hand")
    if placed.body is not loop.node.body or len(placed.body) == 1:
        raise DeclinedError("the loop would be left empty")
    _check_names(placed, loop)
    alone(script, placed)
    alone(script, loop)
    if commented(script, placed):
        raise DeclinedError("a comment speaks of it; read it, then move both")
    blanks = len(script.indent(placed.first)) - len(script.indent(loop.first))
    start, end = script.offset(placed.first, 0), line_end(script, placed.last)
    text = script.text[start:end]
    for splice in sorted(outdented(script, placed.first, placed.last, blanks), key=lambda one: -one.start):
        text = text[: splice.start - start] + text[splice.end - start :]
    if not text.endswith(("\n", "\r")):
        text += script.newline(loop.first)
    before = script.offset(loop.first, 0)
    return [Splice(before, before, text), Splice(start, end, "")]


def _check_names(placed: Placed, loop: Placed) -> None:
    """Raise `DeclinedError` where moving would change what a name means."""
    made = set(names_bound(placed.node)) if not isinstance(placed.node, ast.FunctionDef) else {placed.node.name}
    elsewhere: set[str] = set()
    for part in ast.iter_child_nodes(loop.node):
        if part is not placed.node:
            elsewhere.update(names_bound(part))
            elsewhere.update(_changed(part))
    if changing := sorted(free_names(placed.node) & elsewhere):
        raise DeclinedError(f"it reads {changing[0]}, which the loop sets anew")
    if made & elsewhere:
        raise DeclinedError(f"the loop sets {min(made & elsewhere)} in another place too")
    head = loop.node.iter if isinstance(loop.node, ast.For) else getattr(loop.node, "test", loop.node)
    if made & names_read(head):
        raise DeclinedError("the head of the loop reads what it makes")


def _changed(node: ast.AST) -> set[str]:
    """Return the names of what has an attribute or an item set in `node`."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            found |= names_read(part.value)
    return found
