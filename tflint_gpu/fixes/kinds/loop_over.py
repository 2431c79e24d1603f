"""loop-over: do for all of a list what is done for its first element."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import call_at, unused_name
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, end_of, start_of, statement_at, text_of, unit

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Put the call at the site, whose first argument is ``items[0]``, into a loop over ``items``.

    Declines where the statement does more than that call, or the elements come from elsewhere.
    """
    script = site.script
    placed, call = statement_at(script, site.span), call_at(script, site.span)
    alone(script, placed)
    match placed.node, call.args:
        case ast.Expr(value=value), [ast.Subscript(value=items, slice=ast.Constant(value=0)) as first, *_]:
            if value is not call:
                raise DeclinedError("the statement does more than this call")
        case _:
            raise DeclinedError("the first of all is not picked here")
    name = unused_name(script.tree, "gpu", "device", "each_gpu", "each_device", "this_gpu")
    lead, newline = script.indent(placed.first), script.newline(placed.first)
    start = script.offset(placed.first, len(lead))
    picked, behind = script.offset(*start_of(script, first)), script.offset(*end_of(script, first))
    head = f"for {name} in {text_of(script, items)}:{newline}{lead}{unit(script)}"
    return [Splice(start, start, head), Splice(picked, behind, name)]
