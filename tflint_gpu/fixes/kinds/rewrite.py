"""rewrite: write an expression differently, around its own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import expression_at, given_name, is_literal
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import end_of, has_comment, line_end, quoted, start_of

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Replace the expression at the site (a keyword argument's value) by `text`, a text with names; ``$`` in it is
    what stood there, ``@`` the name of what is made at the site's other place.

    With `literal` the expression must state its value itself, and no comment may stand beside it: one that comes
    from a variable, or is explained, is left alone.
    """
    node = expression_at(site.script, site.span)
    if "literal" in site.parameters and not is_literal(node):
        raise DeclinedError("the value comes from elsewhere; change it there")
    start, end = site.offsets(start_of(site.script, node), end_of(site.script, node))
    old = site.script.text[start:end]
    line = site.script.place(end)[0]
    if "literal" in site.parameters and has_comment(site.script.text[end : line_end(site.script, line)]):
        raise DeclinedError("a comment explains the value; read it first")
    text, imports = site.text("text")
    text = quoted(site.script, text)
    if "$" not in text and has_comment(old):
        raise DeclinedError("a comment stands inside the expression")
    if site.others:
        text = text.replace("@", given_name(site.script, site.others[0], node.lineno))
    return [*imports, Splice(start, end, text.replace("$", old))]
