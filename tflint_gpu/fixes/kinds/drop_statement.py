"""drop-statement: take a whole statement out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import is_literal
from tflint_gpu.fixes.places import DeclinedError
from tflint_gpu.fixes.statements import end_of, removed, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Splice
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Remove the statement that the call or assignment at the site makes up, with its lines.

    Declines where it does more than that, a comment speaks of it, it shares a line with another, or its block
    would be empty.
    """
    placed = statement_at(site.script, site.span)
    match placed.node:
        case ast.Expr(value=ast.Call() as call) if end_of(site.script, call) == site.span[1]:
            pass
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=value) if is_literal(value):
            pass
        case _:
            raise DeclinedError("the statement does more than that, or takes its value from elsewhere")
    return [removed(site.script, placed)]
