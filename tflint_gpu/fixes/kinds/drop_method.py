"""drop-method: take a method out of a chain."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import call_at, method_of
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment, line_end, removed, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Remove the method call at the site from its chain.

    Where ``name = name.method(…)`` is all that a statement does, the statement goes. Declines where a comment
    speaks of it.
    """
    script = site.script
    call = call_at(script, site.span)
    name, end = method_of(script, call)
    placed = statement_at(script, site.span)
    match placed.node, call.func:
        case ast.Assign(targets=[ast.Name(id=made)], value=value), ast.Attribute(value=ast.Name(id=used)):
            if value is call and made == used:
                return [removed(script, placed)]
    dot = script.text.rindex(".", 0, name)
    start = len(script.text[:dot].rstrip(" \t\r\n\\"))
    if has_comment(script.text[start:end]) or _explained(site, start, end):
        raise DeclinedError("a comment speaks of the stage; read it, then remove both")
    return [Splice(start, end, "")]


def _explained(site: Site, start: int, end: int) -> bool:
    """Say whether the method has lines of its own and a comment above or behind it."""
    script = site.script
    first, last = script.place(start)[0], script.place(end)[0]
    above = script.lines[first - 1].strip().startswith("#")
    return first < last and (above or script.text[end : line_end(script, last)].strip().startswith("#"))
