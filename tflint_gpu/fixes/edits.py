"""The edits that checks may ask for, each a function from a call to the splices that change it."""

from __future__ import annotations

import re
from collections.abc import Callable

from tflint_gpu.findings import Change
from tflint_gpu.fixes.names import autotune
from tflint_gpu.fixes.places import DeclinedError, FoundCall, Script, Splice, find_call

#: An edit: (script, call, parameters, TensorFlow version) -> splices. Raises `DeclinedError`.
Edit = Callable[[Script, FoundCall, dict[str, str], tuple[int, int]], list[Splice]]

_REST_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(#[^\r\n]*)?(?=[\r\n]|\Z)")
_COMMENT_ONLY = re.compile(r"[ \t]*(#[^\r\n]*)?(?=[\r\n]|\Z)")


def splices(
    change: Change, script: Script, span: tuple[tuple[int, int], tuple[int, int]], tensorflow: tuple[int, int]
) -> list[Splice]:
    """Return the splices that make `change` at the call whose range is `span`, in the order of the text.

    Lines count from 1 and columns from 0, in `script`. Raises `DeclinedError` with the reason.
    """
    call = find_call(script, *span)
    found = EDITS[change.kind](script, call, dict(change.parameters), tensorflow)
    return sorted(found, key=lambda splice: splice.start)


def append_method(
    script: Script, call: FoundCall, parameters: dict[str, str], tensorflow: tuple[int, int]
) -> list[Splice]:
    """Append ``.method(argument)`` to the call; parameters: `method`, and `argument` (``AUTOTUNE`` or text).

    A chain that puts one method on a line goes on doing so, and a comment stays with the line it speaks of.
    """
    import libcst

    _, (end_line, end_column) = call.span(call.node)
    argument, imports = _value(script, end_line, parameters.get("argument", ""), tensorflow)
    text = f".{parameters['method']}({argument})"
    end = script.offset(end_line, end_column)
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


def add_argument(
    script: Script, call: FoundCall, parameters: dict[str, str], tensorflow: tuple[int, int]
) -> list[Splice]:
    """Add a keyword argument to the call; parameters: `name`, `value` (``AUTOTUNE`` or text) and, where it may
    also be given by position, that `position` from 0.

    An argument that is there as ``None`` or ``1`` gets the new value. Declines where it has another value, and
    where ``*`` or ``**`` arguments may hold it already.
    """
    import libcst

    name, node = parameters["name"], call.node
    _, (line, _column) = call.span(node)
    value, imports = _value(script, line, parameters["value"], tensorflow)
    if any(arg.star for arg in node.args):
        raise DeclinedError(f"the call unpacks arguments, which may already hold {name}")
    given = next((arg for arg in node.args if arg.keyword and arg.keyword.value == name), None)
    if given is None and (position := parameters.get("position")):
        positional = [arg for arg in node.args if arg.keyword is None]
        given = positional[int(position)] if len(positional) > int(position) else None
    if given is not None:
        if call.module.code_for_node(given.value) not in ("None", "1"):
            raise DeclinedError(f"the call already sets {name}")
        (from_line, from_column), (to_line, to_column) = call.span(given.value)
        start, end = script.offset(from_line, from_column), script.offset(to_line, to_column)
        return [*imports, Splice(start, end, value)]
    if len(node.args) == 1 and isinstance(node.args[0].value, libcst.GeneratorExp):
        raise DeclinedError("the call's only argument is a bare generator expression")
    return [*imports, *_new_argument(script, call, f"{name}={value}")]


def _new_argument(script: Script, call: FoundCall, text: str) -> list[Splice]:
    import libcst

    node = call.node
    _, (close_line, close_column) = call.span(node)
    if not node.args:
        close = script.offset(close_line, close_column) - 1
        blanks = len(call.module.code_for_node(node.whitespace_before_args))
        return [Splice(close - blanks, close - blanks, text)]
    last = node.args[-1]
    (start_line, start_column), (end_line, end_column) = call.span(last)
    end = script.offset(end_line, end_column)
    comma = isinstance(last.comma, libcst.Comma)
    behind = end
    if isinstance(last.comma, libcst.Comma):
        behind = end + len(call.module.code_for_node(last.comma.whitespace_before)) + 1
    rest = _REST_OF_LINE.match(script.text, end)
    own_line = not script.lines[start_line - 1][:start_column].strip()
    if not (own_line and close_line > end_line and rest and behind <= rest.end()):
        return [Splice(behind, behind, f" {text},") if comma else Splice(end, end, f", {text}")]
    layout = script.newline(end_line) + script.indent(start_line)
    if comma:
        return [Splice(rest.end(), rest.end(), f"{layout}{text},")]
    if rest.end() == end:
        return [Splice(end, end, f",{layout}{text}")]
    return [Splice(end, end, ","), Splice(rest.end(), rest.end(), layout + text)]


def _value(script: Script, line: int, value: str, tensorflow: tuple[int, int]) -> tuple[str, list[Splice]]:
    return autotune(script, line, tensorflow) if value == "AUTOTUNE" else (value, [])


#: Every edit that a check may name in a `Change`.
EDITS: dict[str, Edit] = {"append-method": append_method, "add-argument": add_argument}
