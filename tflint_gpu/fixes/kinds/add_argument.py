"""add-argument: give a call one keyword argument more, or another value for one that is None or 1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import quoted

if TYPE_CHECKING:
    import libcst

    from tflint_gpu.fixes.places import Found
    from tflint_gpu.fixes.site import Site

_REST_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(#[^\r\n]*)?(?=[\r\n]|\Z)")


def edit(site: Site) -> list[Splice]:
    """Add a keyword argument to the call.

    Parameters: `name`, `value` (a text with names) and, where it may also be given by position, that `position`
    from 0.

    An argument that is there as ``None`` or ``1`` gets the new value. Declines where it has another value, and
    where ``*`` or ``**`` arguments may hold it already.
    """
    import libcst

    call, name = site.call(), site.parameters["name"]
    node = call.node
    if any(arg.star for arg in node.args):
        raise DeclinedError(f"the call unpacks arguments, which may already hold {name}")
    value, imports = site.text("value")
    value = quoted(site.script, value)
    given = _given(node, name, site.parameters.get("position"))
    if given is not None:
        if call.code(given.value) not in ("None", "1"):
            raise DeclinedError(f"the call already sets {name}")
        start, end = site.offsets(*call.span(given.value))
        return [*imports, Splice(start, end, value)]
    if len(node.args) == 1 and isinstance(node.args[0].value, libcst.GeneratorExp):
        raise DeclinedError("the call's only argument is a bare generator expression")
    return [*imports, *_new_argument(site, call, f"{name}={value}")]


def _given(node: libcst.Call, name: str, position: str | None) -> libcst.Arg | None:
    """Return the argument that is called `name`, or stands at that `position`."""
    for arg in node.args:
        if arg.keyword and arg.keyword.value == name:
            return arg
    positional = [arg for arg in node.args if arg.keyword is None]
    return positional[int(position)] if position and len(positional) > int(position) else None


def _new_argument(site: Site, call: Found[libcst.Call], text: str) -> list[Splice]:
    import libcst

    node, script = call.node, site.script
    _, (close_line, close_column) = call.span(node)
    if not node.args:
        close = script.offset(close_line, close_column) - 1
        blanks = len(call.code(node.whitespace_before_args))
        return [Splice(close - blanks, close - blanks, text)]
    last = node.args[-1]
    (start_line, start_column), (end_line, end_column) = call.span(last)
    end = script.offset(end_line, end_column)
    comma = isinstance(last.comma, libcst.Comma)
    behind = end
    if isinstance(last.comma, libcst.Comma):
        behind = end + len(call.code(last.comma.whitespace_before)) + 1
    rest = _REST_OF_LINE.match(script.text, end)
    own_line = not script.lines[start_line - 1][:start_column].strip()
    if own_line and close_line == end_line and _one_a_line(site, call):
        beside = script.newline(start_line) + script.lines[start_line - 1][:start_column] + text
        return [Splice(behind, behind, f"{beside}," if comma else f",{beside}")]
    if not (own_line and close_line > end_line and rest and behind <= rest.end()):
        return [Splice(behind, behind, f" {text},") if comma else Splice(end, end, f", {text}")]
    layout = script.newline(end_line) + script.indent(start_line)
    if comma:
        return [Splice(rest.end(), rest.end(), f"{layout}{text},")]
    if rest.end() == end:
        return [Splice(end, end, f",{layout}{text}")]
    return [Splice(end, end, ","), Splice(rest.end(), rest.end(), layout + text)]


def _one_a_line(site: Site, call: Found[libcst.Call]) -> bool:
    """Say whether all arguments but the first, of two or more, begin a line."""
    begins = [call.span(arg)[0] for arg in call.node.args[1:]]
    return bool(begins) and not any(site.script.lines[line - 1][:column].strip() for line, column in begins)
