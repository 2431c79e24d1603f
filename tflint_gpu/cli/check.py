"""``tflint-gpu check``: the static half, with evidence merged in where there is some, and fixes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflint_gpu.cli.options import (
    FilePath,
    cache_options,
    file_options,
    fix_options,
    means_from,
    output_options,
    outputs_from,
    settings_from,
    settings_options,
)
from tflint_gpu.cli.run import LintResult, Means, assemble, in_light_of, lint, relinter, report
from tflint_gpu.source.discovery import absolute_path, discover, source_file

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.findings import Finding
    from tflint_gpu.fixes.apply import FixReport
    from tflint_gpu.source.files import SourceFile
    from tflint_gpu.source.texts import Error
    from tflint_gpu.trace.evidence import Evidence

#: Flags that put something else in the place of the report.
_NO_REPORT = ("show_settings", "show_files", "diff", "fix_only")


@click.command(name="check", short_help="Lint files and folders; runs nothing of theirs.")
@click.argument("paths", nargs=-1, type=FilePath())
@click.option(
    "--evidence",
    metavar="FILE",
    multiple=True,
    type=FilePath(),
    help="Merge what a trace measured; may be repeated, for several runs or hosts.",
)
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="Apply the other fixes too.")
@click.option("--fix-only", is_flag=True, help="Apply fixes, and report nothing but what was done.")
@click.option("--diff", is_flag=True, help="Show what the fixes would change; write nothing.")
@click.option("--statistics", is_flag=True, help="Count findings by rule instead of listing them.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked, and check nothing.")
@click.option("--show-settings", is_flag=True, help="Tell each setting and where it comes from; check nothing.")
@click.option("--stdin-filename", metavar="FILE", default="stdin.py", help="The name of what is read from -.")
@fix_options
@file_options
@cache_options
@settings_options
@output_options
def command(paths: tuple[str, ...], evidence: tuple[str, ...], fix: bool, **flags: Any) -> int:
    """Lint PATHS (default: the current folder): Python files, notebooks, and folders of them.

    A path of - reads one file from standard input. Needs neither TensorFlow nor a GPU.
    """
    if flags["statistics"] and flags["output_format"] not in (None, "full", "concise"):
        raise click.UsageError(
            "--statistics prints a table; a report in another format goes to --output FORMAT:FILE"
        )
    for asked in (name for name in _NO_REPORT if flags[name]):
        for idle in (name for name in ("output", "statistics") if flags[name]):
            raise click.UsageError(f"{_flag(asked)} makes no report: leave {_flag(idle)} off")
    if flags["show_settings"]:
        return _show_settings(paths, flags)
    named = [flags["stdin_filename"] if path == "-" else path for path in paths] or ["."]
    settings = settings_from(flags, named)
    unlisted: list[Error] = []
    files = _files(paths or (".",), flags["stdin_filename"], settings, unlisted)
    if flags["show_files"]:
        click.echo("".join(f"{file.path}\n" for file in files), nl=False)
        for error in unlisted:
            click.echo(f"error: {error}", err=True)
        return 2 if unlisted else 0
    measured = _load(evidence)
    settings = in_light_of(settings, measured)
    if not files:
        click.echo("note: no Python file or notebook to check", err=True)
    # Evidence is judged by more than what a cache or another process can hand over.
    with means_from(flags, settings, plain=measured is not None) as means:
        result = _lint(files, settings, means)
        result = replace(result, errors=(*unlisted, *result.errors))
        if flags["diff"]:
            return _show_diff(result, measured, settings, means, unsafe=flags["unsafe_fixes"])
        if flags["fix_only"]:
            return _fix_only(result, measured, settings, means, unsafe=flags["unsafe_fixes"])
        if fix or flags["unsafe_fixes"]:
            result = _fix(result, measured, settings, means, unsafe=flags["unsafe_fixes"])
            result = replace(result, errors=tuple(dict.fromkeys((*unlisted, *result.errors))))
        outputs = outputs_from(flags)
        return report(result, measured, settings, outputs, statistics=flags["statistics"], means=means)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _files(paths: tuple[str, ...], stdin_name: str, settings: Settings, unlisted: list[Error]) -> list[SourceFile]:
    if "-" not in paths:
        return discover(paths, settings, unlisted)
    if len(paths) > 1:
        raise click.UsageError("- reads the only file; name no other path beside it")
    content = sys.stdin.buffer.read()
    return [source_file(absolute_path(stdin_name), explicit=True, content=content)]


def _lint(files: list[SourceFile], settings: Settings, means: Means) -> LintResult:
    """Lint, and tell on a terminal how far it is."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return lint(files, settings, means)
    from tflint_gpu.lint.progress import Progress

    with Progress(sys.stderr) as progress:
        return lint(files, settings, replace(means, progress=progress))


def _show_settings(paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    from tflint_gpu.cli.shown import settings_table

    named = [flags["stdin_filename"] if path == "-" else path for path in paths] or ["."]
    click.echo(settings_table(flags, named), nl=False)
    return 0


def _load(paths: tuple[str, ...]) -> Evidence | None:
    if not paths:
        return None
    from tflint_gpu.trace.evidence import load

    if len(paths) == 1:
        return load(Path(paths[0]))
    from tflint_gpu.trace.joined import join

    return join({path: load(Path(path)) for path in paths})


def _fixes(
    result: LintResult, evidence: Evidence | None, settings: Settings, means: Means, *, unsafe: bool
) -> FixReport | None:
    """Return what the fixes would do, telling what they cannot; None where no finding has one."""
    report = assemble(result, evidence, settings)
    for finding in report.findings:
        if finding.unfixable:
            _decline(finding, finding.unfixable)
    if not any(finding.fix for finding in report.findings):
        return None
    from tflint_gpu.fixes.apply import apply_fixes

    done = apply_fixes(
        report.findings,
        report.texts.raw,
        relinter(result, settings, means),
        tensorflow=report.oldest,
        unsafe=unsafe,
    )
    for refusal in done.declined:
        _decline(refusal.finding, refusal.reason)
    return done


def _decline(finding: Finding, reason: str) -> None:
    click.echo(f"note: {finding.location}: {finding.code} not fixed: {reason}", err=True)


def _show_diff(
    result: LintResult, evidence: Evidence | None, settings: Settings, means: Means, *, unsafe: bool
) -> int:
    """Print what the fixes would change; return 1 where there is something, 2 where a file could not be read."""
    done = _fixes(result, evidence, settings, means, unsafe=unsafe)
    if done is not None:
        click.echo(done.diff(), nl=False)
    return _errors(result) or int(done is not None and bool(done.changed))


def _errors(result: LintResult) -> int:
    """Tell which files could not be read; return 2 where there are some."""
    for error in result.errors:
        click.echo(f"error: {error}", err=True)
    return 2 if result.errors else 0


def _fix_only(
    result: LintResult, evidence: Evidence | None, settings: Settings, means: Means, *, unsafe: bool
) -> int:
    """Write the fixes, those of a file from standard input to standard output; what is left is not told."""
    done = _fixes(result, evidence, settings, means, unsafe=unsafe)
    given = next((file.content for file in result.files if file.content is not None), None)
    if given is not None:
        changed = done.changed[0].after if done and done.changed else given
        sys.stdout.buffer.write(changed)
        sys.stdout.flush()
    elif done is not None:
        _write(done)
    return _errors(result)


def _fix(
    result: LintResult, evidence: Evidence | None, settings: Settings, means: Means, *, unsafe: bool
) -> LintResult:
    """Write the fixes and return what is left."""
    if any(file.content is not None for file in result.files):
        raise click.UsageError("--fix cannot report on standard input; --fix-only writes it to standard output")
    done = _fixes(result, evidence, settings, means, unsafe=unsafe)
    if done is None:
        return result
    _write(done)
    left = lint(result.files, settings, means) if done.changed else result
    tried = ("safe", "unsafe") if unsafe else ("safe",)
    return replace(left, findings=tuple(_as_tried(finding, tried) for finding in left.findings))


def _as_tried(finding: Finding, tried: tuple[str, ...]) -> Finding:
    """Return `finding` without a fix that was tried in vain: the report must not offer it again."""
    if finding.fix is None or finding.fix.safety not in tried:
        return finding
    return replace(finding, fix=None, unfixable="the fix was tried and left out")


def _write(done: FixReport) -> None:
    if not done.changed:
        return
    from tflint_gpu.fixes.write import write_changes

    write_changes(done, Path())
    told = [
        f"{count} {word}{'s' if count != 1 else ''}"
        for count, word in ((len(done.fixed), "finding"), (len(done.changed), "file"))
    ]
    click.echo(f"note: fixed {told[0]} in {told[1]}", err=True)
