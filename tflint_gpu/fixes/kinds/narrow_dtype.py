"""narrow-dtype: write a 64-bit floating point type as the 32-bit one, in the same spelling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import expression_at, is_literal
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import end_of, start_of

if TYPE_CHECKING:
    from tflint_gpu.fixes.site import Site

_WIDE = re.compile(r"\b(float64|double)\b")


def edit(site: Site) -> list[Splice]:
    """Replace ``float64`` or ``double`` in the type at the site (a keyword argument's value) by ``float32``.

    Declines where the type comes from a variable.
    """
    node = expression_at(site.script, site.span)
    start, end = site.offsets(start_of(site.script, node), end_of(site.script, node))
    found = _WIDE.search(site.script.text, start, end)
    if found is None or not is_literal(node):
        raise DeclinedError("the type comes from elsewhere; change it there")
    return [Splice(found.start(), found.end(), "float32")]
