"""The settings as text: what is in force, and who says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tflint_gpu.cli.options import flags_of, start_of
from tflint_gpu.config import Settings, layers_of, load_settings, origins_of
from tflint_gpu.config_keys import KEYS
from tflint_gpu.source.discovery import relative


def settings_table(flags: Mapping[str, Any], paths: Sequence[str]) -> str:
    """Return a line of TOML for every setting, its origin behind it: a file, the command line, or the default."""
    start, given = start_of(paths), flags_of(flags)
    settings = load_settings(start, given, isolated=flags["isolated"])
    origins = origins_of(layers_of(start, given, isolated=flags["isolated"]))
    lines = [(_line(key, settings), _told(origins.get(key))) for key in KEYS]
    width = max(len(text) for text, _ in lines if len(text) <= 60)
    return "".join(f"{text:<{width}}  # {origin}\n" for text, origin in lines)


def _told(origins: list[Path | None] | None) -> str:
    if not origins:
        return "default"
    return ", ".join(dict.fromkeys("command line" if path is None else relative(path) for path in origins))


def _line(key: str, settings: Settings) -> str:
    if key == "tensorflow" and settings.tensorflow is None:
        # TOML has no word for "not set", and a version that is no version would be refused.
        return "# tensorflow: what the project requires, else what is installed, else the newest known"
    if key == "keras-backend" and settings.keras_backend is None:
        return "# keras-backend: what the code chooses, else this machine's Keras, else tensorflow"
    return f"{key} = {_shown(key, settings)}"


def _shown(key: str, settings: Settings) -> str:
    value = getattr(settings, key.replace("-", "_"))
    if key == "per-file-ignores":
        return _toml({pattern: list(rules) for globs, rules in value for pattern in globs.patterns})
    if key == "exclude":
        return _toml([pattern for globs in value for pattern in globs.patterns])
    if key == "fail-on":
        return _toml("never" if value is None else str(value))
    if key == "severity":
        return _toml({name: str(level) for name, level in value.items()})
    return _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(str(name))} = {_toml(part)}" for name, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False, default=str)
