"""every-nth-round: do something in some rounds of a loop only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import DeclinedError
from tflint_gpu.fixes.statements import alone, put_under, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Splice
    from tflint_gpu.fixes.site import Site
    from tflint_gpu.fixes.statements import Placed


def edit(site: Site) -> list[Splice]:
    """Put the statement at the site under ``if index % rounds == 0``.

    The index is that of the loop at its other place. Declines where the loop counts nothing, the statement does
    more than log, or stands deeper than the loop.
    """
    script = site.script
    placed, loop = statement_at(script, site.span), statement_at(script, site.others[0])
    index = _index(loop)
    if placed.parent is not loop.node:
        raise DeclinedError("it does not stand in the loop itself; guard it by hand")
    if not isinstance(placed.node, ast.Expr) or not _only_tells(placed.node.value):
        raise DeclinedError("the rest of the program may need what it does; guard it by hand")
    alone(script, placed)
    head = f"if {index} % {site.parameters['rounds']} == 0:"
    return put_under(script, placed.first, placed.last, head)


#: What logs, and what makes text or numbers of the things that are logged.
_TELLS = ("print", "set_postfix", "set_postfix_str", "set_description", "log", "log_metric", "info", "scalar")
_SHOWS = (
    "numpy",
    "item",
    "result",
    "format",
    "join",
    "float",
    "int",
    "str",
    "round",
    "len",
    "mean",
    "reduce_mean",
)


def _only_tells(node: ast.expr) -> bool:
    """Say whether the statement logs and does nothing else."""
    if not isinstance(node, ast.Call) or _last_name(node.func) not in _TELLS:
        return False
    inner = (part for part in ast.walk(node) if isinstance(part, ast.Call) and part is not node)
    return all(_last_name(part.func) in _SHOWS for part in inner)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _index(loop: Placed) -> str:
    """Return the name that counts the rounds of the loop from 0; raises `DeclinedError` where none does."""
    match loop.node:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[_])) if name != "_":
            return name
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]),
        ) if name != "_":
            return name
    raise DeclinedError("the loop counts no rounds; draw from enumerate() first")
