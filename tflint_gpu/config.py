"""The settings: what pyproject.toml or tflint-gpu.toml says, overlaid by flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tflint_gpu.config_keys import ALL, KEYS, READERS, nearest
from tflint_gpu.errors import UserError
from tflint_gpu.findings import Severity
from tflint_gpu.source.globs import Globs

if TYPE_CHECKING:
    from tflint_gpu.checks.pages import Page


class Named(Protocol):
    """Anything that belongs to a rule: its page, or a finding."""

    @property
    def code(self) -> str:
        """``TFG101``."""

    @property
    def name(self) -> str:
        """``missing-prefetch``."""

    @property
    def factor(self) -> str:
        """``input-pipeline``."""


#: Keys whose flags add to what files say.
_ADDED_TO = ("exclude", "per-file-ignores", "ignore", "extend-select", "unfixable", "extend-fixable")
#: A flag that begins a selection anew, and the keys of files that then count no more.
_ANEW = {"select": ("ignore", "extend-select"), "fixable": ("unfixable", "extend-fixable")}


@dataclass(frozen=True)
class Settings:
    """What to check and how loudly. Rules are named by code, name, factor or ``all``.

    `fail_on` is None for ``never``. `rules` holds the options of single rules, `severity` their loudness, both by
    the reference that the user wrote. `fixable` and its kin say of which rules the fixes are offered and made.
    `traced` is no setting but a fact: the versions of TensorFlow and Keras that a traced run used. `origin` is
    the file that was read, None where there was none.
    """

    select: tuple[str, ...] = (ALL,)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[Globs, tuple[str, ...]], ...] = ()
    exclude: tuple[Globs, ...] = ()
    force_exclude: bool = False
    tensorflow: str | None = None
    keras_backend: str | None = None
    fail_on: Severity | None = Severity.WARNING
    severity: Mapping[str, Severity] = field(default_factory=dict)
    fixable: tuple[str, ...] = (ALL,)
    unfixable: tuple[str, ...] = ()
    extend_fixable: tuple[str, ...] = ()
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pedantic: bool = False
    traced: tuple[str, str | None] | None = None
    origin: Path | None = None

    def enables(self, page: Page) -> bool:
        """Say whether the rule is on: the closest reference wins (rule, factor, ``all``), at a tie `ignore`."""
        chosen = closeness(page, (*self.select, *self.extend_select))
        return chosen > closeness(page, self.ignore)

    def fixes(self, rule: Named) -> bool:
        """Say whether the fixes of the rule are offered and made; the closest reference wins, as in `enables`."""
        chosen = closeness(rule, (*self.fixable, *self.extend_fixable))
        return chosen > closeness(rule, self.unfixable)

    def severity_of(self, page: Page) -> Severity:
        """Return how loud the rule is: the setting whose reference is closest, else what its page says."""
        references = [reference for reference in self.severity if closeness(page, (reference,))]
        if not references:
            return page.severity
        return self.severity[max(references, key=lambda reference: closeness(page, (reference,)))]

    def options_of(self, page: Page) -> dict[str, Any]:
        """Return the options of the rule: its page's defaults, overlaid by the settings."""
        options = dict(page.options)
        for reference, chosen in self.rules.items():
            if closeness(page, (reference,)):
                options |= chosen
        return options

    def ignored_in(self, absolute: Path, rule: Named) -> bool:
        """Say whether ``per-file-ignores`` silences the rule in the file at `absolute`."""
        return any(
            closeness(rule, references) and globs.covers(absolute) for globs, references in self.per_file_ignores
        )


def closeness(rule: Named, references: Sequence[str]) -> int:
    """Return how closely any of `references` names the rule: 3 itself, 2 its factor, 1 ``all``, 0 not."""
    best = 0
    for reference in references:
        word = reference.lower()
        if word in (rule.name, rule.code.lower()):
            return 3
        best = max(best, 2 if word == rule.factor else 1 if word == ALL else 0)
    return best


def load_settings(start: Path, flags: Mapping[str, Any], *, isolated: bool = False) -> Settings:
    """Return the settings for a run whose files lie at or below `start`, flags overlaid.

    `flags` has the keys of the file (``extend-select`` …), plus ``force-exclude``, ``pedantic`` and ``config``
    (inline TOML, or files that take the place of the one found); None and () mean not given. With `isolated` no
    file is looked for. Raises `UserError` naming file, key and remedy for anything that is not as it must be.
    """
    values: dict[str, Any] = {}
    layers = layers_of(start, flags, isolated=isolated)
    for path, table in layers:
        _overlay(values, _read_table(table, path), flag=path is None)
    origin = next((path for path, _ in reversed(layers) if path is not None), None)
    return Settings(
        **values,
        force_exclude=bool(flags.get("force-exclude")),
        pedantic=bool(flags.get("pedantic")),
        origin=origin,
    )


def layers_of(
    start: Path, flags: Mapping[str, Any], *, isolated: bool = False
) -> list[tuple[Path | None, dict[str, Any]]]:
    """Return what `load_settings` lays one over the other: a file (None: the command line) and what it says."""
    given = [_inline(text) for text in flags.get("config") or ()]
    files = [path for path, _ in given if path is not None]
    layers: list[tuple[Path | None, dict[str, Any]]] = []
    if files:
        layers += [(path, table) for path, table in given if path is not None]
    elif not isolated and (found := find_config(start)):
        layers.append(found)
    layers += [(None, table) for path, table in given if path is None]
    layers.append((None, {key: flags[key] for key in KEYS if flags.get(key) not in (None, ())}))
    return layers


def origins_of(layers: Sequence[tuple[Path | None, dict[str, Any]]]) -> dict[str, list[Path | None]]:
    """Return, for every key that one of `layers` states, the files (None: the command line) whose words count."""
    origins: dict[str, list[Path | None]] = {}
    for path, table in layers:
        for key in _dropped_by(table) if path is None else ():
            origins.pop(key, None)
        for key in table:
            added = key in ("severity", "rules") or (path is None and key in _ADDED_TO)
            origins[key] = [*(origins.get(key, ()) if added else ()), path]
    return origins


def find_config(start: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the nearest configuration at or above `start`, with its table; None where there is none.

    In one folder ``tflint-gpu.toml`` comes before ``pyproject.toml``, which counts only if it has the table.
    """
    for folder in (start, *start.parents):
        own = folder / "tflint-gpu.toml"
        if _is_file(own):
            return own, _load_toml(own)
        shared = folder / "pyproject.toml"
        if _is_file(shared) and any(name in _bytes(shared) for name in (b"tflint-gpu", b"tool.tflint_gpu")):
            tools = _load_toml(shared).get("tool", {})
            if "tflint_gpu" in tools:
                raise UserError(f"{shared}: unknown table [tool.tflint_gpu]; did you mean [tool.tflint-gpu]?")
            table = tools.get("tflint-gpu")
            if table is not None:
                if not isinstance(table, dict):
                    raise UserError(f"{shared}: tool.tflint-gpu must be a table")
                return shared, table
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # its folder may not be looked into: nobody could have meant it
        return False


def _inline(text: str) -> tuple[Path | None, dict[str, Any]]:
    if text.endswith(".toml"):
        path = Path(text).absolute()
        table = _load_toml(path)
        return path, table.get("tool", {}).get("tflint-gpu", {}) if path.name == "pyproject.toml" else table
    try:
        return None, _toml().loads(text)
    except ValueError as problem:
        raise UserError(
            f"--config {text!r} is neither a .toml file nor TOML such as 'tensorflow = \"2.15\"': {problem}"
        ) from None


def _toml() -> Any:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror}; mend it, or use --isolated") from None


def _load_toml(path: Path) -> dict[str, Any]:
    try:
        table: dict[str, Any] = _toml().loads(_bytes(path).decode())
    except UnicodeDecodeError as problem:
        line = _bytes(path).count(b"\n", 0, problem.start) + 1
        raise UserError(f"{path}: line {line} is not UTF-8, which TOML must be; save it as UTF-8") from None
    except ValueError as problem:
        raise UserError(f"{path}: not valid TOML: {problem}") from None
    return table


def _overlay(values: dict[str, Any], layer: dict[str, Any], *, flag: bool) -> None:
    """Lay `layer` over `values`. Flags add to tables and patterns, and ``--select`` starts the selection anew."""
    for key in _dropped_by(layer) if flag else ():
        values.pop(key.replace("-", "_"), None)
    for key, value in layer.items():
        if key in ("severity", "rules") and key in values:
            merged = dict(values[key])
            for name, part in value.items():
                merged[name] = {**merged.get(name, {}), **part} if key == "rules" else part
            values[key] = merged
        elif flag and key.replace("_", "-") in _ADDED_TO:
            values[key] = (*values.get(key, ()), *value)
        else:
            values[key] = value


def _dropped_by(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of files that count no more because `flags` begin their selection anew."""
    return tuple(key for flag, keys in _ANEW.items() if flag in flags for key in keys)


def _read_table(table: Mapping[str, Any], path: Path | None) -> dict[str, Any]:
    """Return the keyword arguments for `Settings` that one table states."""
    where = str(path) if path else "command line"
    # Files are matched by paths without `..`.
    root = Path(os.path.normpath(path.parent)) if path else Path.cwd()
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            hint = "; write the keys without [tool.tflint-gpu] here" if key == "tool" else nearest(key, KEYS)
            raise UserError(f"{where}: unknown key {key!r}{hint}")
        values[key.replace("-", "_")] = READERS[key](value, f"{where}: {key}", root)
    return values
