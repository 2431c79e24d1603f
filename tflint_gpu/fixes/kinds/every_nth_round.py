"""every-nth-round: do something in some rounds of a loop only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import names_read, unused_name
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, end_of, put_under, start_of, statement_at, text_of

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site
    from tflint_gpu.fixes.statements import Placed


def edit(site: Site) -> list[Splice]:
    """Put the statement at the site under ``if index % rounds == 0``.

    The index is that of the loop at its other place; one that counts nothing draws from ``enumerate()`` from now
    on. Declines where the statement does more than log, or stands deeper than the loop.
    """
    script = site.script
    placed, loop = statement_at(script, site.span), statement_at(script, site.others[0])
    if placed.parent is not loop.node:
        raise DeclinedError("it does not stand in the loop itself; guard it by hand")
    if not isinstance(placed.node, ast.Expr) or not _only_tells(placed.node.value):
        raise DeclinedError("the rest of the program may need what it does; guard it by hand")
    alone(script, placed)
    index, counting = _counted(script, loop)
    head = f"if {index} % {site.parameters['rounds']} == 0:"
    return [*counting, *put_under(script, placed.first, placed.last, head)]


#: Names for the round of a loop that has none; the first that is free is taken.
_NAMES = ("step", "batch_number", "round_number", "loop_round")

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


def _counted(script: Script, loop: Placed) -> tuple[str, list[Splice]]:
    """Return the name that counts the rounds of the loop, and what gives it one that has none.

    A name that says that nobody reads it gets another. Raises `DeclinedError` where the loop is no plain ``for``.
    """
    node = loop.node
    if not isinstance(node, ast.For):
        raise DeclinedError("the loop counts no rounds; count them first")
    source = _unwrapped(node.iter)
    match source, node.target:
        case ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]), ast.Name() as index:
            return _named(script, index)
        case ast.Call(func=ast.Name(id="trange")), ast.Name() as index:
            return _named(script, index)
        case ast.Call(func=ast.Name(id="enumerate"), args=[_] | [_, _]), ast.Tuple(elts=[ast.Name() as index, _]):
            return _named(script, index)
        case ast.Call(func=ast.Name(id="range" | "enumerate" | "trange")), _:
            raise DeclinedError("what the loop draws counts in a way of its own; guard it by hand")
    return _enumerated(script, node)


def _unwrapped(node: ast.expr) -> ast.expr:
    """Return what a progress bar around `node` draws from."""
    match node:
        case ast.Call(func=ast.Name(id="tqdm") | ast.Attribute(attr="tqdm"), args=[inner, *_]):
            return inner
    return node


def _named(script: Script, index: ast.Name) -> tuple[str, list[Splice]]:
    """Return the loop's own name for the round; one that says that it is unused is written anew."""
    if not index.id.startswith("_"):
        return index.id, []
    if index.id in names_read(script.tree):
        raise DeclinedError(f"{index.id} has another meaning elsewhere; name the loop's index first")
    name = unused_name(script.tree, *_NAMES)
    start = script.offset(*start_of(script, index))
    return name, [Splice(start, start + len(index.id), name)]


def _enumerated(script: Script, node: ast.For) -> tuple[str, list[Splice]]:
    """Return a new name for the round, and the splices that draw it from ``enumerate()``."""
    drawn = text_of(script, node.target)
    if isinstance(node.iter, ast.Tuple | ast.List | ast.Starred):
        raise DeclinedError("the loop counts no rounds; draw from enumerate() first")
    name = unused_name(script.tree, *_NAMES)
    target = f"{name}, ({drawn})" if isinstance(node.target, ast.Tuple) and drawn[0] != "(" else f"{name}, {drawn}"
    (start, end), (first, last) = (
        (script.offset(*start_of(script, part)), script.offset(*end_of(script, part)))
        for part in (node.target, node.iter)
    )
    return name, [Splice(start, end, target), Splice(first, first, "enumerate("), Splice(last, last, ")")]
