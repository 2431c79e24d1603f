"""Flags that several commands share, and what they mean together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from tflint_gpu.cli.run import Means, Output
from tflint_gpu.config import Settings, load_settings
from tflint_gpu.config_keys import KERAS_BACKENDS
from tflint_gpu.errors import UserError
from tflint_gpu.places import obstacle
from tflint_gpu.source.discovery import absolute_path

FORMATS = ("full", "concise", "json", "github", "sarif", "rdjson")

_Command = TypeVar("_Command", bound=Callable[..., Any])


class FilePath(click.Path):
    """A path, which must not be empty: what an unset variable leaves would be taken for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` as `click.Path` does; fails for an empty one."""
        if value == "":
            self.fail("an empty path; name a file or folder, . for the current one", param, ctx)
        return super().convert(value, param, ctx)


def _words(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Split at commas, so that lists may be given in one flag or in several."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _rules(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Split at commas; a value without a rule, as an unset variable gives it, would otherwise mean all of them."""
    for value in values:
        if not value.strip(", "):
            raise click.BadParameter(f"{value!r} names no rule; leave the option off to mean all")
    return _words(ctx, option, values)


def _output_files(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[Output, ...]:
    outputs = []
    for value in values:
        form, _, file = value.partition(":")
        if not file or form not in FORMATS:
            raise click.BadParameter(f"{value!r} is not FORMAT:FILE with a format of {', '.join(FORMATS)}")
        if file == "-":
            raise click.BadParameter(f"{value!r}: standard output takes its format from --output-format {form}")
        if why := obstacle(Path(file)):
            raise UserError(f"{file}: cannot be written: {why}; name another --output")
        outputs.append(Output(form, Path(file)))
    return tuple(outputs)


def finite(_ctx: click.Context, _option: click.Parameter, value: float) -> float:
    """Refuse ``nan`` and ``inf``, which pass a range of click's but are no time to wait."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds")
    return value


def _list(
    name: str, metavar: str, text: str, callback: Callable[..., tuple[str, ...]] = _words
) -> Callable[[_Command], _Command]:
    return click.option(name, multiple=True, metavar=metavar, callback=callback, help=text)


def _stack(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: Everything that settings files can say, as flags, and which settings file is read.
settings_options: Callable[[_Command], _Command] = _stack(
    _list("--select", "RULE,…", "Check only these rules (code, name, factor or all).", _rules),
    _list("--ignore", "RULE,…", "Leave these rules out."),
    _list("--extend-select", "RULE,…", "Check these rules too."),
    click.option(
        "--per-file-ignores",
        multiple=True,
        metavar="PATTERN:RULE,…",
        help="Leave rules out in files that match a gitignore pattern.",
    ),
    click.option("--tensorflow", metavar="VERSION", help="The TensorFlow version that the code is meant for."),
    click.option(
        "--keras-backend",
        type=click.Choice(KERAS_BACKENDS),
        help="What Keras runs on.  [default: what the code or this machine says]",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["error", "warning", "info", "hint", "never"]),
        help="Exit with 1 from this severity on.  [default: warning]",
    ),
    click.option(
        "--config",
        multiple=True,
        metavar="FILE|TOML",
        help="Read settings from this .toml file, or take this line of TOML.",
    ),
    click.option("--isolated", is_flag=True, help="Read no settings file."),
    click.option("--pedantic", is_flag=True, help="Show hints too."),
)

#: Of which rules the fixes are offered and made.
fix_options: Callable[[_Command], _Command] = _stack(
    _list("--fixable", "RULE,…", "Fix findings of these rules only.", _rules),
    _list("--unfixable", "RULE,…", "Fix no findings of these rules."),
    _list("--extend-fixable", "RULE,…", "Fix findings of these rules too."),
)

#: Which files of the folders given are checked; a trace names its files itself.
file_options: Callable[[_Command], _Command] = _stack(
    _list("--exclude", "PATTERN,…", "Skip files that match a gitignore pattern."),
    click.option("--force-exclude", is_flag=True, help="Apply excludes to files named on the command line too."),
)

#: How the work is done; what is found does not depend on it.
cache_options: Callable[[_Command], _Command] = _stack(
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Check in so many processes.  [default: as many as pay, up to the number of CPUs]",
    ),
    click.option("--no-cache", is_flag=True, help="Keep nothing between runs, and use nothing kept."),
    click.option(
        "--cache-dir",
        type=FilePath(),
        metavar="FOLDER",
        help="Where findings are kept.  [default: .tflint_gpu_cache beside the settings file, else here]",
    ),
)

#: Where the report goes.
output_options: Callable[[_Command], _Command] = _stack(
    click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        help="Format of standard output.  [default: full on a terminal, else concise]",
    ),
    click.option(
        "--output",
        callback=_output_files,
        multiple=True,
        metavar="FORMAT:FILE",
        help="Write a report to a file as well; may be repeated.",
    ),
    click.option("--color/--no-color", default=None, help="Colour, or not.  [default: on a terminal]"),
)


def settings_from(flags: Mapping[str, Any], paths: Sequence[str | Path]) -> Settings:
    """Return the settings for a run over `paths`, from the values of `settings_options` by parameter name."""
    return load_settings(start_of(paths), flags_of(flags), isolated=flags["isolated"])


def flags_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of `settings_options` by the names that settings files use."""
    return {name.replace("_", "-"): value for name, value in flags.items()}


@contextmanager
def means_from(flags: Mapping[str, Any], settings: Settings, *, plain: bool = False) -> Iterator[Means]:
    """Give how a lint is to be done, from the values of `cache_options`; what it made is kept at the end.

    With `plain` it is done in this process and without a cache, so that findings have all their detail.
    """
    if plain:
        yield Means()
        return
    if flags["no_cache"]:
        yield Means(jobs=flags["jobs"] or 0)
        return
    from tflint_gpu.lint.cache import Cache, cache_folder

    cache = Cache(cache_folder(settings, flags["cache_dir"]))
    yield Means(cache, flags["jobs"] or 0)
    cache.close()


def start_of(paths: Sequence[str | Path]) -> Path:
    """Return the deepest folder that holds all of `paths`: from there up settings files are looked for."""
    import os

    folders = [path if path.is_dir() else path.parent for path in map(absolute_path, paths)]
    try:
        return Path(os.path.commonpath(folders)) if folders else Path.cwd()
    except ValueError:  # several drives
        return Path.cwd()


def outputs_from(flags: Mapping[str, Any]) -> list[Output]:
    """Return where the report goes, from the values of `output_options` by parameter name."""
    import sys

    form = flags["output_format"] or ("full" if sys.stdout.isatty() else "concise")
    return [Output(form, None, flags["color"]), *flags["output"]]
