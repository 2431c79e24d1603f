"""The rule pages: one Markdown file a rule, whose TOML front matter is the rule's configuration."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tflint_gpu.findings import Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The nine factors with the first digit of their codes, in the order reports name them.
FACTORS = {
    "input-pipeline": "1",
    "batch-size": "2",
    "model": "3",
    "memory": "4",
    "layer-ops": "5",
    "graph": "6",
    "precision": "7",
    "multi-gpu": "8",
    "environment": "9",
}

_FRONT = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)
_BLOCK = re.compile(r"^```python (bad|good|fixed)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^# file: (\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A code block of a page: `kind` is bad, good or fixed; `files` maps names to texts (``train.py`` alone
    where the block names none); `settings` are the words behind the kind, such as ``tensorflow=2.6``."""

    kind: str
    files: dict[str, str]
    settings: dict[str, str] = field(default_factory=dict)
    line: int = 1


@dataclass(frozen=True, slots=True)
class Page:
    """A rule as its page states it.

    `plugin` is the distribution that brings it along, with its version, "" for rules of our own; the code of such
    a rule is in `plugin_module`.
    """

    code: str
    name: str
    factor: str
    severity: Severity
    summary: str
    phases: tuple[str, ...]
    fix: str
    since: str
    path: Path
    options: dict[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    plugin: str = ""
    plugin_module: str = ""

    @property
    def module(self) -> str:
        """Dotted name of the module that holds the rule's code."""
        return self.plugin_module or f"tflint_gpu.checks.{self.factor}.{self.name}".replace("-", "_")

    def text(self) -> str:
        """Return the page's prose, front matter left off."""
        return _FRONT.sub("", self.path.read_text(encoding="utf-8")).strip() + "\n"

    def examples(self) -> list[Example]:
        """Return the page's code blocks in order."""
        source = self.path.read_text(encoding="utf-8")
        return [
            Example(
                match[1],
                _split_files(match[3]),
                dict(word.split("=", 1) for word in match[2].split()),
                source.count("\n", 0, match.start()) + 1,
            )
            for match in _BLOCK.finditer(source)
        ]


def _split_files(block: str) -> dict[str, str]:
    parts = _FILE.split(block)
    if len(parts) == 1:
        return {"train.py": block}
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rules_folder() -> Path:
    """Return the folder of the pages: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).parent.parent / "rules"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "rules"


def read_page(path: Path, *, plugin: str = "", module: str = "") -> Page:
    """Read one page; raises `ValueError` naming the page and the key when its front matter is not whole.

    The factor is the name of the folder; a page of a `plugin`, whose code is in `module`, states it.
    """
    front = _FRONT.match(path.read_text(encoding="utf-8"))
    if front is None:
        raise ValueError(f"{path}: no front matter between +++ lines")
    try:
        data = tomllib.loads(front[1])
        return Page(
            code=data["code"],
            name=data["name"],
            factor=data["factor"] if plugin else path.parent.name,
            severity=Severity.parse(data["severity"]),
            summary=data["summary"],
            phases=tuple(data["phases"]),
            fix=data["fix"],
            since=data["since"],
            path=path,
            options=data.get("options", {}),
            references=tuple(data.get("references", ())),
            plugin=plugin,
            plugin_module=module,
        )
    except KeyError as missing:
        raise ValueError(f"{path}: front matter lacks {missing}") from None
    except (ValueError, TypeError, AttributeError) as problem:
        raise ValueError(f"{path}: front matter: {problem}") from None


@functools.cache
def builtin_pages() -> tuple[Page, ...]:
    """Return the pages that ship with this package, ordered by code."""
    return tuple(sorted((read_page(p) for p in rules_folder().glob("*/*.md")), key=lambda page: page.code))
