"""add-option: give a decorator an argument, whether it is written as a call or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import dotted, expression_at
from tflint_gpu.fixes.kinds import add_argument
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import end_of

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site


def edit(site: Site) -> list[Splice]:
    """Write ``name=value`` into the call at the site; a bare ``@name`` there becomes a call first."""
    try:
        bare = dotted(expression_at(site.script, site.span))
    except DeclinedError:
        bare = ""
    if not bare:
        return add_argument.edit(site)
    value, imports = site.text("value")
    end = site.script.offset(*end_of(site.script, expression_at(site.script, site.span)))
    return [*imports, Splice(end, end, f"({site.parameters['name']}={value})")]
