"""decorate: put a decorator on a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Put ``@decorator``, a text with names, above the function whose head stands at the site.

    Declines where it has decorators already: what they would make of each other is not known.
    """
    script = site.script
    placed = statement_at(script, site.span)
    if not isinstance(placed.node, ast.FunctionDef):
        raise DeclinedError("no function stands there any more")
    if placed.node.decorator_list:
        raise DeclinedError("the function has decorators already")
    line = placed.node.lineno
    text, imports = site.text("decorator", line)
    start = script.offset(line, 0)
    return [*imports, Splice(start, start, f"{script.indent(line)}@{text}{script.newline(line)}")]
