"""The rules: each is a page in ``rules/`` and a module here; `load` brings the enabled ones to life."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.pages import Page, builtin_pages
from tflint_gpu.errors import UserError

if TYPE_CHECKING:
    from tflint_gpu.config import Settings

__all__ = ["Check", "Judgement", "Page", "all_pages", "builtin_pages", "load", "load_check"]


def load_check(page: Page) -> type[Check]:
    """Import the module of `page` and return its one `Check` subclass.

    Raises `UserError` naming the distribution where that of a plug-in fails, or holds no rule.
    """
    try:
        module = importlib.import_module(page.module)
        return _check_in(module)
    except Exception as problem:
        if not page.plugin:
            raise
        raise UserError(
            f"plug-in {page.plugin}: {page.module} cannot be used ({type(problem).__name__}: {problem}); "
            f"mend or uninstall it, or leave its rule out with --ignore {page.code}"
        ) from None


def _check_in(module: ModuleType) -> type[Check]:
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Check) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"it must define one subclass of Check, and defines {len(found)}")
    return found[0]


def load(settings: Settings) -> list[Check]:
    """Return the checks that `settings` enable, ordered by code."""
    return [
        load_check(page)(page, settings.severity_of(page), settings.options_of(page))
        for page in all_pages()
        if settings.enables(page)
    ]
