"""Rules of other packages: each is a module and a page, found by the entry-point group ``tflint_gpu.checks``.

An entry point ``large-prefetch = "acme_rules.large_prefetch"`` names the module of a rule; its page is the file
``large-prefetch.md`` beside it, laid out as the pages here, with the rule's factor as one more key.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu import PLUGINS
from tflint_gpu.checks.pages import FACTORS, Page, builtin_pages, read_page
from tflint_gpu.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: ``ACME101``: letters of the package's own and a number, so that it is told from those of other linters.
_CODE = re.compile(r"(?!TFG)[A-Z]{2,}\d{3,}")


@functools.cache
def plugin_pages() -> tuple[Page, ...]:
    """Return the pages of all installed plug-ins, ordered by code.

    Raises `UserError` naming the distribution where a page or its module cannot be found or is not as it must be.
    """
    from importlib.metadata import entry_points

    pages = sorted((_page(entry) for entry in entry_points(group=PLUGINS)), key=lambda page: page.code)
    taken = {word: "tflint-gpu" for page in builtin_pages() for word in (page.code, page.name)}
    for page in pages:
        for word in (page.code, page.name):
            if word in taken:
                raise _broken(page.plugin, f"its rule {word} is a rule of {taken[word]} too; rename it")
            taken[word] = page.plugin
    return tuple(pages)


def _page(entry: EntryPoint) -> Page:
    plugin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    path = _folder(entry.module, plugin) / f"{entry.name}.md"
    try:
        page = read_page(path, plugin=plugin, module=entry.module)
    except OSError as problem:
        raise _broken(plugin, f"the page of its rule {entry.name} cannot be read: {problem}") from None
    except ValueError as problem:
        raise _broken(plugin, str(problem)) from None
    if wrong := _faults(page, entry.name):
        raise _broken(plugin, f"{path}: {wrong}")
    return page


def _folder(module: str, plugin: str) -> Path:
    """Return the folder of a plug-in's module, whose package is imported for it, but not the module itself."""
    try:
        spec = importlib.util.find_spec(module)
    except Exception as problem:  # the package may raise whatever it likes
        raise _broken(plugin, f"{module} cannot be imported ({type(problem).__name__}: {problem})") from None
    if spec is None or spec.origin is None:
        raise _broken(plugin, f"its entry point names the module {module}, which is not there")
    return Path(spec.origin).parent


def _faults(page: Page, name: str) -> str:
    if page.name != name:
        return f"name is {page.name!r}, but the entry point says {name!r}"
    if not _CODE.fullmatch(page.code):
        return f"code {page.code!r} must be letters and a number such as ACME101, and not begin with TFG"
    if page.factor not in FACTORS:
        return f"factor {page.factor!r} is none of {', '.join(FACTORS)}"
    return ""


def _broken(plugin: str, problem: str) -> UserError:
    return UserError(f"plug-in {plugin}: {problem}; mend or uninstall it")
