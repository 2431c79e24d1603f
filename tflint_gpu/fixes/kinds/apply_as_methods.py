"""apply-as-methods: write ``.apply(function(…))`` as the methods that do the same."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import argument_ranges, call_at, method_of
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment, unit

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site

#: Arguments get lines of their own where the call would be longer.
LONGEST_LINE = 100

#: An argument in the text: ``name=$given``, ``name=$given|instead`` or ``$given``, with the comma before it.
_ARGUMENT = re.compile(r"(?P<comma>,\s+)?(?P<name>\w+=)?\$(?P<given>\w+)(\|(?P<instead>[^,)]+))?")


def edit(site: Site) -> list[Splice]:
    """Replace the ``apply`` around the call at the site by `methods`; `positions` are the call's argument names.

    In `methods`, ``$name`` is the text of that argument. One that is not given is left out, or where ``|text``
    stands behind it that is taken. Arguments that are `gone` are dropped. Declines where the call is not written
    inside ``apply`` itself.
    """
    script, inner = site.script, call_at(site.script, site.span)
    calls = (node for node in script.nodes if isinstance(node, ast.Call))
    applied = next((node for node in calls if _applies(node, inner)), None)
    if applied is None:
        raise DeclinedError("the transformation is not applied where it is made")
    start, end = method_of(script, applied)
    if has_comment(script.text[start:end]):
        raise DeclinedError("a comment stands among the arguments")
    methods, imports = site.text("methods")
    given = _given(script, inner, site.parameters["positions"].split(","))
    taken = {match["given"] for match in _ARGUMENT.finditer(methods)}
    if left := sorted(given.keys() - taken - set(site.parameters.get("gone", "").split(","))):
        raise DeclinedError(f"nothing takes the argument {left[0]}")
    line, column = script.place(start)
    text = _ARGUMENT.sub(lambda match: _filled(match, given), methods)
    if column + len(text) > LONGEST_LINE:
        text = _ARGUMENT.sub(lambda match: _filled(match, given), _laid_out(script, line, methods))
    return [*imports, Splice(start, end, text)]


def _laid_out(script: Script, line: int, methods: str) -> str:
    """Return `methods` with every argument of the first of them on a line of its own."""
    name, _, rest = methods.partition("(")
    arguments, _, others = rest.partition(")")
    close = script.newline(line) + script.indent(line)
    layout = close + unit(script)
    return f"{name}({layout}{arguments.replace(', ', f',{layout}')},{close}){others}"


def _applies(node: ast.AST, inner: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="apply"), args=[argument], keywords=[]):
            return argument is inner
    return False


def _given(script: Script, call: ast.Call, names: list[str]) -> dict[str, str]:
    """Return the text of each argument by its name."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(word.arg is None for word in call.keywords):
        raise DeclinedError("the call unpacks arguments")
    texts = [script.text[start:end] for start, end in argument_ranges(script, call)]
    by_name = dict(zip(names, texts[: len(call.args)], strict=False))
    for keyword, text in zip(call.keywords, texts[len(call.args) :], strict=True):
        by_name[str(keyword.arg)] = text.partition("=")[2].strip()
    return by_name


def _filled(match: re.Match[str], given: dict[str, str]) -> str:
    text = given.get(match["given"], match["instead"])
    if text is None:
        return ""
    return f"{match['comma'] or ''}{match['name'] or ''}{text}"
