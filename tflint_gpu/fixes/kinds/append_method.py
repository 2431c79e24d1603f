"""append-method: put one more ``.method(argument)`` behind a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import Splice

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site

#: The next method of a chain, on a line of its own.
_GOES_ON = re.compile(r"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n)[ \t]*\.")
_COMMENT_ONLY = re.compile(r"[ \t]*(#[^\r\n]*)?(?=[\r\n]|\Z)")


def edit(site: Site) -> list[Splice]:
    """Append ``.method(argument)`` to the call; parameters: `method`, and `argument`, a text with names.

    A chain that puts one method on a line goes on doing so, and a comment stays with the line it speaks of.
    """
    import libcst

    script, call = site.script, site.call()
    _, (end_line, end_column) = call.span(call.node)
    argument, imports = site.text("argument")
    text = f".{site.parameters['method']}({argument})"
    end = script.offset(end_line, end_column)
    if goes_on := _GOES_ON.match(script.text, end):
        # The chain puts one method on a line from here on.
        line = script.place(goes_on.end() - 1)[0]
        behind = goes_on.start(2)
        return [*imports, Splice(behind, behind, script.newline(end_line) + script.indent(line) + text)]
    func = call.node.func
    if not isinstance(func, libcst.Attribute):
        return [*imports, Splice(end, end, text)]
    (name_line, name_column), _ = call.span(func.attr)
    if script.lines[name_line - 1][:name_column].strip() != ".":
        return [*imports, Splice(end, end, text)]
    layout = script.newline(name_line) + script.indent(name_line)
    if isinstance(func.dot.whitespace_before, libcst.SimpleWhitespace):
        # The lines are joined by backslashes, and behind one no comment may stand.
        return [*imports, Splice(end, end, f" \\{layout}{text}")]
    if rest := _COMMENT_ONLY.match(script.text, end):
        end = rest.end()
    return [*imports, Splice(end, end, layout + text)]
