"""The rules: each is a page in ``rules/`` and a module here; `load` brings the enabled ones to life."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.pages import Page, all_pages

if TYPE_CHECKING:
    from tflint_gpu.config import Settings

__all__ = ["Check", "Judgement", "Page", "all_pages", "load", "load_check"]


def load_check(page: Page) -> type[Check]:
    """Import the module of `page` and return its one `Check` subclass."""
    module = importlib.import_module(page.module)
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Check) and value.__module__ == module.__name__
    )
    return found


def load(settings: Settings) -> list[Check]:
    """Return the checks that `settings` enable, ordered by code."""
    return [
        load_check(page)(page, settings.severity_of(page), settings.options_of(page))
        for page in all_pages()
        if settings.enables(page)
    ]
