"""layers-to-map: take the first layers of a sequential model out of it, and apply them to its data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import call_at, unused_name
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import alone, has_comment, start_of, statement_at, text_of, unit

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site

_NOT_LISTED = "the layers are not the first in the model's list"


def edit(site: Site) -> list[Splice]:
    """Move layers out of the model whose construction stands at the site, before the ``fit`` at its other place.

    Parameters: `first` and `end`, which elements of the model's list go (end exclusive); `inputs`, how many of
    them are inputs that nobody needs any more; `options`, what the layers are called with in training alone. A
    single layer that has a name is used by it, others become a model of their own. The data of ``fit``, and
    without `options` those it validates with, are pairs under a name, which gets a ``map`` right before. Declines
    for models that are not written as a list.
    """
    script, made, fit = site.script, call_at(site.script, site.span), call_at(site.script, site.others[0])
    listed = made.args[0] if made.args else None
    first, last, inputs = (int(site.parameters[name]) for name in ("first", "end", "inputs"))
    if not isinstance(listed, ast.List) or len(listed.elts) <= last:
        raise DeclinedError(_NOT_LISTED)
    going = listed.elts[first + inputs : last]
    start, end = (script.offset(*start_of(script, node)) for node in (listed.elts[first], listed.elts[last]))
    if has_comment(script.text[start:end]):
        raise DeclinedError("a comment stands among the layers")
    at_model, at_fit = statement_at(script, site.span), statement_at(script, site.others[0])
    for placed in (at_model, at_fit):
        alone(script, placed)
    if at_model.body is not at_fit.body:
        raise DeclinedError("the model is built in one block and trained in another")
    splices = [Splice(start, end, "")]
    if len(going) == 1 and isinstance(going[0], ast.Name):
        name = going[0].id
    else:
        name = unused_name(script.tree, "augmentation", "first_layers", "layers_before")
        splices.append(_own_model(script, at_model.first, name, text_of(script, made.func), going))
    mapped, imports = site.spelled(_MAPPED, at_fit.first)
    lead, newline = script.indent(at_fit.first), script.newline(at_fit.first)
    options = site.parameters.get("options", "")
    lines = "".join(
        f"{lead}{line}{newline}"
        for data in _data_of(fit, validation="options" not in site.parameters)
        for line in mapped.replace("@", data).replace("$", f"{name}(x{options})").split("\n")
    ).replace("    ", unit(script))
    before = script.offset(at_fit.first, 0)
    return [*imports, *splices, Splice(before, before, lines)]


_MAPPED = (
    "@ = @.map(lambda x, y: ($, y), num_parallel_calls={tensorflow.data.AUTOTUNE})\n"
    "@ = @.prefetch({tensorflow.data.AUTOTUNE})"
)


def _own_model(script: Script, line: int, name: str, maker: str, layers: list[ast.expr]) -> Splice:
    lead, newline = script.indent(line), script.newline(line)
    inner = "".join(f"{lead}{unit(script)}{text_of(script, layer)},{newline}" for layer in layers)
    start = script.offset(line, 0)
    return Splice(start, start, f"{lead}{name} = {maker}([{newline}{inner}{lead}]){newline}")


def _data_of(fit: ast.Call, *, validation: bool) -> list[str]:
    """Return the names of the data that ``fit`` trains on and, where it is asked for, validates with."""
    wanted = ("x", "validation_data") if validation else ("x",)
    given = [*fit.args[:1], *(word.value for word in fit.keywords if word.arg in wanted)]
    if not given or not all(isinstance(node, ast.Name) for node in given):
        raise DeclinedError("the data have no name of their own")
    return list(dict.fromkeys(node.id for node in given if isinstance(node, ast.Name)))
