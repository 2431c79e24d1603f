"""The kinds of edits that checks may ask for: one module a kind, found by its name, as a rule is.

The kind ``append-method`` is the module ``append_method``. It has one public function, ``edit(site)``, which
returns the splices that make the edit at a `tflint_gpu.fixes.site.Site`, or raises `DeclinedError` saying why.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Splice
    from tflint_gpu.fixes.site import Site

#: An edit: it raises `DeclinedError` where it cannot be made.
Edit = Callable[["Site"], "list[Splice]"]


def load_kind(name: str) -> Edit:
    """Return the edit called `name`; raises `LookupError` where no module is."""
    if name not in all_kinds():
        raise LookupError(f"no edit is called {name!r}")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    edit: Edit = module.edit
    return edit


@functools.cache
def all_kinds() -> tuple[str, ...]:
    """Return the name of every edit, in the order of the alphabet."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)))
