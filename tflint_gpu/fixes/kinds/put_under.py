"""put-under: move statements into a block with a head of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import given_name
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import Placed, alone, put_under, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Indent the statements from the site to its other place under `head`, a text with names.

    ``@`` in it is the name of what is made at the third place. Declines where they are not of one block, or share
    lines with others. What stands in strings stays.
    """
    script = site.script
    first = statement_at(script, site.span)
    last = statement_at(script, site.others[0])
    if last.body is not first.body:
        first, last = _in_one_block(script, first, last)
    if last.index < first.index:
        raise DeclinedError("the statements do not stand in one block")
    alone(script, first)
    alone(script, last)
    head, imports = site.text("head", first.first)
    if len(site.others) > 1:
        head = head.replace("@", given_name(script, site.others[1], first.first))
    return [*imports, *put_under(script, first.first, last.last, head)]


def _in_one_block(script: Script, first: Placed, last: Placed) -> tuple[Placed, Placed]:
    """Return the statements of the module, or of one function, that hold the two."""
    for node in script.nodes:
        body = node.body if isinstance(node, ast.Module | ast.FunctionDef) else []
        around = [Placed(part, body, node) for part in body]
        one = next((part for part in around if part.first <= first.first and first.last <= part.last), None)
        other = next((part for part in around if part.first <= last.first and last.last <= part.last), None)
        if one and other and one.node is not other.node:
            return one, other
    raise DeclinedError("the statements do not stand in one block")
