"""assign-instead: assign another value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import is_literal
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import end_of, start_of, statement_at

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Replace the value of the assignment at the site by `text`, a text with names.

    Declines where the value is no literal.
    """
    node = statement_at(site.script, site.span).node
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not is_literal(node.value):
        raise DeclinedError("the value comes from elsewhere; change it there")
    text, imports = site.text("text")
    start, end = site.offsets(start_of(site.script, node.value), end_of(site.script, node.value))
    return [*imports, Splice(start, end, text)]
