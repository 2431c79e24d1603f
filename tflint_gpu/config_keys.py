"""How each key of the settings is read, and what is said of a value that it cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.findings import Severity
from tflint_gpu.source.globs import Globs

ALL = "all"
KERAS_BACKENDS = ("tensorflow", "jax", "torch")
_NEVER = "never"


def nearest(word: str, known: Sequence[str]) -> str:
    """Return ``; did you mean …?`` for the known word most like `word`, "" where none is."""
    import difflib

    folded = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def _strings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise UserError(f"{where} must be a list of strings")
    return tuple(value)


def _references(value: Any, where: str, _root: Path) -> tuple[str, ...]:
    return known_rules(_strings(value, where), where)


def known_rules(words: Sequence[str], where: str) -> tuple[str, ...]:
    """Return `words`, each of which names rules; raises `UserError`, beginning with `where`, if one does not."""
    return tuple(_reference(word, where) for word in words)


def _reference(word: str, where: str) -> str:
    from tflint_gpu.checks.catalogue import find_page
    from tflint_gpu.checks.pages import FACTORS

    if word.lower() == ALL or word.lower() in FACTORS or find_page(word):
        return word
    raise UserError(f"{where}: unknown rule {word!r}{nearest(word, rule_names())}")


def rule_names() -> list[str]:
    """Return every word that names rules: names, codes, factors and ``all``."""
    from tflint_gpu.checks.catalogue import all_pages
    from tflint_gpu.checks.pages import FACTORS

    pages = all_pages()
    return [*(p.name for p in pages), *(p.code for p in pages), *FACTORS, ALL]


def _globs(value: Any, where: str, root: Path) -> tuple[Globs, ...]:
    patterns = _strings(value, where)
    return (_compiled(Globs(root, patterns), where),) if patterns else ()


def _compiled(globs: Globs, where: str) -> Globs:
    try:
        globs.covers(globs.root / "x")
    except ValueError as problem:
        raise UserError(f"{where}: not a gitignore pattern: {problem}") from None
    return globs


def _per_file(value: Any, where: str, root: Path) -> tuple[tuple[Globs, tuple[str, ...]], ...]:
    pairs = value.items() if isinstance(value, dict) else list(_split_pairs(value, where))
    return tuple(
        (_compiled(Globs(root, (pattern,)), where), _references(rules, where, root)) for pattern, rules in pairs
    )


def _split_pairs(value: Any, where: str) -> Iterator[tuple[str, list[str]]]:
    for text in _strings(value, where):
        pattern, colon, rules = text.rpartition(":")
        if not colon or not pattern:
            raise UserError(f"{where}: {text!r} is not PATTERN:RULE,RULE")
        yield pattern, [rule.strip() for rule in rules.split(",")]


def _tensorflow(value: Any, where: str, _root: Path) -> str:
    if isinstance(value, str) and re.fullmatch(r"\d+\.\d+(\.\w+)*", value):
        return value
    raise UserError(f'{where} must be a version in quotes, such as "2.15"')


def _keras_backend(value: Any, where: str, _root: Path) -> str:
    if value in KERAS_BACKENDS:
        return str(value)
    raise UserError(f"{where}: {value!r} is none of {', '.join(KERAS_BACKENDS)}")


def _fail_on(value: Any, where: str, _root: Path) -> Severity | None:
    if value == _NEVER:
        return None
    return _level(value, where, f"error, warning, info, hint or {_NEVER}")


def _level(value: Any, where: str, choices: str = "error, warning, info or hint") -> Severity:
    try:
        return Severity.parse(value)
    except (ValueError, AttributeError):
        raise UserError(f"{where}: {value!r} is none of {choices}") from None


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where} must be a table")
    return value


def _severities(value: Any, where: str, _root: Path) -> dict[str, Severity]:
    return {_reference(name, where): _level(level, where) for name, level in _table(value, where).items()}


def _rules(value: Any, where: str, _root: Path) -> dict[str, dict[str, Any]]:
    return {name: _rule_options(name, table, f"{where}.{name}") for name, table in _table(value, where).items()}


def _rule_options(name: str, table: Any, where: str) -> dict[str, Any]:
    from tflint_gpu.checks.catalogue import all_pages, find_page

    page = find_page(name)
    if page is None:
        raise UserError(f"{where}: unknown rule {name!r}{nearest(name, [p.name for p in all_pages()])}")
    for key, value in _table(table, where).items():
        if key not in page.options:
            has = nearest(key, tuple(page.options)) or (
                f"; it has {', '.join(page.options)}" if page.options else "; it has none"
            )
            raise UserError(f"{where}: unknown option {key!r}{has}")
        _same_kind(value, page.options[key], f"{where}.{key}")
    return dict(table)


def _same_kind(value: Any, default: Any, where: str) -> None:
    wanted = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(default, bool)):
        kind = {int: "a whole number", float: "a number", bool: "true or false", str: "a string", list: "a list"}
        raise UserError(f"{where} must be {kind.get(type(default), 'a table')}, as its default {default!r} is")
    # The numbers are counts, sizes and shares; nothing is below zero, and nothing compares with NaN.
    if isinstance(value, (int, float)) and not value >= 0:
        raise UserError(f"{where} must be 0 or more")


#: How the value of each key of ``[tool.tflint-gpu]`` is read.
READERS: dict[str, Any] = {
    "select": _references,
    "ignore": _references,
    "extend-select": _references,
    "per-file-ignores": _per_file,
    "exclude": _globs,
    "tensorflow": _tensorflow,
    "keras-backend": _keras_backend,
    "fail-on": _fail_on,
    "severity": _severities,
    "fixable": _references,
    "unfixable": _references,
    "extend-fixable": _references,
    "rules": _rules,
}

#: Every key of ``[tool.tflint-gpu]``.
KEYS = tuple(READERS)
