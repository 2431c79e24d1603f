"""The catalogue of all rules: the pages of our own and those of plug-ins."""

from __future__ import annotations

from tflint_gpu.checks.pages import Page, builtin_pages
from tflint_gpu.checks.plugins import plugin_pages


def all_pages() -> tuple[Page, ...]:
    """Return every page, those of plug-ins last; raises `UserError` for a plug-in that is not whole."""
    return builtin_pages() + plugin_pages()


def find_page(word: str) -> Page | None:
    """Return the page that the code or name `word` means; plug-ins are asked for what is no rule of our own."""
    for pages in (builtin_pages, all_pages):
        for page in pages():
            if word.lower() in (page.name, page.code.lower()):
                return page
    return None
