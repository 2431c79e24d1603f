"""move-before: move a statement up, with the assignments that it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import names_bound, names_read
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, commented, line_end, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site
    from tflint_gpu.fixes.statements import Placed


def edit(site: Site) -> list[Splice]:
    """Move the statement around the site before the one at its other place, with what it reads of those between.

    The statement is the one, simple or not, that stands in the same block as the other. Declines where what it
    reads is made in a way that cannot move along, and where a comment speaks of it.
    """
    script = site.script
    goal = statement_at(script, site.others[0])
    moved = _in_block(site, goal)
    between = goal.body[goal.index : moved.index]
    going, needed = [moved], names_read(moved.node)
    for node in reversed(between):
        made = set(names_bound(node))
        if not made & needed:
            continue
        if not isinstance(node, ast.Assign) or node is goal.node or not isinstance(node.value, ast.Call):
            raise DeclinedError(f"it reads {min(made & needed)}, which is made in between")
        going.append(type(moved)(node, goal.body, goal.parent))
        needed |= names_read(node)
    going.reverse()
    if set(names_bound(moved.node)) & {
        name for node in between for name in (*names_read(node), *names_bound(node))
    }:
        raise DeclinedError("what stands in between uses a name that it sets")
    for placed in (goal, *going):
        alone(script, placed)
    if any(commented(script, placed) for placed in going):
        raise DeclinedError("a comment speaks of it; read it, then move both")
    ranges = [(script.offset(placed.first, 0), line_end(script, placed.last)) for placed in going]
    newline = script.newline(goal.first)
    texts = [script.text[start:end] for start, end in ranges]
    before = script.offset(goal.first, 0)
    text = "".join(text if text.endswith(("\n", "\r")) else text + newline for text in texts)
    return [Splice(before, before, text), *(Splice(start, end, "") for start, end in ranges)]


def _in_block(site: Site, goal: Placed) -> Placed:
    """Return the statement of the goal's block that holds the site, behind the goal."""
    for node in goal.body[goal.index + 1 :]:
        placed = type(goal)(node, goal.body, goal.parent)
        if placed.first <= site.span[0][0] and site.span[1][0] <= placed.last:
            return placed
    raise DeclinedError("the two do not stand in one block")
