"""rename-call: call a method by its new name, with the arguments that this one takes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import argument_ranges, call_at, method_of
from tflint_gpu.fixes.kinds.drop_arguments import dropped
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import end_of, outdented, start_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Rename the method called at the site; parameters: its new `name`, and lists by commas, each where needed.

    `positions` are the names of the old method's arguments in order: from the second on, arguments given by
    position get theirs written before them. `renames` are pairs ``old:new`` of keywords, `gone` are keywords that
    the new method does not take.
    """
    script, call = site.script, call_at(site.script, site.span)
    start, _ = method_of(script, call)
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        raise DeclinedError("the call unpacks positional arguments")
    gone = [name for name in _listed(site, "gone") if any(word.arg == name for word in call.keywords)]
    end = script.offset(*end_of(script, call.func))
    return [
        Splice(start, end, site.parameters["name"]),
        *_aligned(site, call, end - start - len(site.parameters["name"])),
        *_named(site, call),
        *_renamed(script, call, dict(pair.split(":") for pair in _listed(site, "renames"))),
        *dropped(script, call, gone),
    ]


def _aligned(site: Site, call: ast.Call, shorter: int) -> list[Splice]:
    """Return the splices that keep arguments below the first one there, where all of them stand so."""
    script, ranges = site.script, argument_ranges(site.script, call)
    (line, column), last = script.place(ranges[0][0]) if ranges else (0, 0), end_of(script, call)[0]
    below = range(line + 1, last + 1)
    aligned = line == end_of(script, call.func)[0] and all(script.indent(under) == " " * column for under in below)
    return outdented(script, line + 1, last, shorter) if aligned and shorter > 0 and below else []


def _listed(site: Site, name: str) -> list[str]:
    return [part for part in site.parameters.get(name, "").split(",") if part]


def _named(site: Site, call: ast.Call) -> Iterator[Splice]:
    names, gone = _listed(site, "positions"), _listed(site, "gone")
    if len(call.args) > len(names):
        raise DeclinedError("the call has more arguments than the method took")
    for name, (start, _) in list(zip(names, argument_ranges(site.script, call), strict=False))[1 : len(call.args)]:
        if name in gone:
            raise DeclinedError(f"{name} is given by position, and the new method does not take it")
        yield Splice(start, start, f"{name}=")


def _renamed(script: Script, call: ast.Call, renames: dict[str, str]) -> Iterator[Splice]:
    for keyword in call.keywords:
        if keyword.arg in renames:
            start = script.offset(*start_of(script, keyword))
            yield Splice(start, start + len(keyword.arg), renames[keyword.arg])
