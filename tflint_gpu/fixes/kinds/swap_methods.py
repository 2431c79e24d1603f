"""swap-methods: let two neighbouring methods of a chain change places."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import call_at, method_of
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Swap the method at the site with the one that its other place names, which comes right before it.

    The two are neighbours in one chain, or end and begin of two assignments in a row to the same name. Declines
    where anything else stands between them, or a comment.
    """
    script, later, earlier = site.script, call_at(site.script, site.span), call_at(site.script, site.others[0])
    (first, first_end), (second, second_end) = method_of(script, earlier), method_of(script, later)
    if not (_chained(later, earlier) or _in_a_row(site, later, earlier)):
        raise DeclinedError("the two stages are not neighbours in one chain")
    if has_comment(script.text[first:second_end]):
        raise DeclinedError("a comment stands between the two stages")
    one, other = script.text[first:first_end], script.text[second:second_end]
    return [Splice(first, first_end, other), Splice(second, second_end, one)]


def _chained(later: ast.Call, earlier: ast.Call) -> bool:
    return isinstance(later.func, ast.Attribute) and later.func.value is earlier


def _in_a_row(site: Site, later: ast.Call, earlier: ast.Call) -> bool:
    """Say whether ``name = ….earlier()`` stands right before ``name = name.later()…``."""
    after, before = statement_at(site.script, site.span), statement_at(site.script, site.others[0])
    neighbours = after.body is before.body and before.index + 1 == after.index
    match before.node, later.func:
        case ast.Assign(targets=[ast.Name(id=made)], value=value), ast.Attribute(value=ast.Name(id=used)):
            rebinds = isinstance(after.node, ast.Assign) and _binds_only(after.node, made)
            return neighbours and value is earlier and made == used and rebinds
    return False


def _binds_only(node: ast.Assign, name: str) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
