"""drop-arguments: take keyword arguments out of a call."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import argument_ranges, call_at, is_literal
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment, start_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site

_COMMA = re.compile(r"[ \t]*,?[ \t]*")


def edit(site: Site) -> list[Splice]:
    """Remove the keyword arguments `names` (by commas) from the call at the site, which has all of them.

    Declines where one has its value from a variable, or a comment speaks of it.
    """
    names = site.parameters["names"].split(",")
    return list(dropped(site.script, call_at(site.script, site.span), names))


def dropped(script: Script, call: ast.Call, names: list[str]) -> Iterator[Splice]:
    """Yield the splices that take the keyword arguments `names` out of `call`; raises `DeclinedError`."""
    given = {keyword.arg: keyword for keyword in call.keywords}
    for name in names:
        if name not in given:
            raise DeclinedError(f"{name} is not given by name")
        if not is_literal(given[name].value):
            raise DeclinedError(f"the value of {name} comes from elsewhere")
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts.sort(key=lambda part: start_of(script, part))
    going = [isinstance(part, ast.keyword) and part.arg in names for part in parts]
    ends = argument_ranges(script, call)
    index = 0
    while index < len(parts):
        last = index
        while going[index] and last + 1 < len(parts) and going[last + 1]:
            last += 1
        if going[index]:
            yield _gap(script, ends, index, last)
        index = last + 1


def _gap(script: Script, ends: list[tuple[int, int]], first: int, last: int) -> Splice:
    """Return the splice that removes the arguments `first` to `last` with the commas between them."""
    start, end = ends[first][0], ends[last][1]
    line_start, line_end = _lines(script, start, end)
    comma = _COMMA.match(script.text, end)
    behind = comma.end() if comma else end
    rest = script.text[behind:line_end]
    if not script.text[line_start:start].strip() and (not rest.strip() or rest.lstrip().startswith("#")):
        start, end = line_start, line_end
    elif first > 0:
        start = ends[first - 1][1]
    elif last + 1 < len(ends):
        end = ends[last + 1][0]
    else:
        end = behind
    if has_comment(script.text[start:end]):
        raise DeclinedError("a comment speaks of the argument; read it, then remove both")
    return Splice(start, end, "")


def _lines(script: Script, start: int, end: int) -> tuple[int, int]:
    """Return the offsets of the lines around a range, the last line's end among them."""
    first, last = script.place(start)[0], script.place(end)[0]
    return script.offset(first, 0), script.offset(last, len(script.lines[last - 1]))
