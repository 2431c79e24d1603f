"""The main job, for any command: lint files, merge evidence, hand the report to every output."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.config import Settings, closeness
from tflint_gpu.config_keys import nearest, rule_names
from tflint_gpu.errors import UserError
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.lint.linting import PLAIN, LintResult, Means, lint, silence

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target
    from tflint_gpu.report.merge import Report
    from tflint_gpu.trace.evidence import Evidence

__all__ = [
    "LintResult",
    "Means",
    "Output",
    "assemble",
    "counts",
    "exit_status",
    "in_light_of",
    "lint",
    "relinter",
    "report",
]


@dataclass(frozen=True)
class Output:
    """A format and the file it goes to; None is standard output. `color` is None where the terminal decides."""

    format: str
    file: Path | None = None
    color: bool | None = None


def assemble(result: LintResult, evidence: Evidence | None, settings: Settings, means: Means = PLAIN) -> Report:
    """Return the report on `result`, judged by `evidence` where there is some; hints only with `pedantic`."""
    from tflint_gpu.program.target import Target, find_target
    from tflint_gpu.report.merge import merge
    from tflint_gpu.report.texts import Texts

    checks = result.checks
    if evidence is not None and not checks:
        from tflint_gpu.checks import load

        checks = tuple(load(settings))
    targets = result.targets
    if not targets:
        targets = (find_target((), {}, settings)[0] if settings.tensorflow else Target(),)
    given = {file.path: file.content for file in result.files if file.content is not None}
    merged = merge(
        result.findings,
        checks,
        evidence,
        files=len(result.files),
        target=targets[0],
        errors=result.errors,
        suppressed=result.suppressed,
        texts=Texts(given=given, memory=means.cache),
    )
    kept, silenced = silence(merged.findings, settings, result.suppressions)
    quietest = Severity.HINT if settings.pedantic else Severity.INFO
    return replace(
        merged,
        findings=tuple(_with_fix_as_set(finding, settings) for finding in kept if finding.severity >= quietest),
        suppressed=(*result.suppressed, *silenced),
        targets=targets,
        left_out=result.left_out,
        notes=(
            *merged.notes,
            *_on_targets(targets, len(result.files)),
            *map(str, result.left_out),
            *_on_suppressions(result, settings),
        ),
    )


def in_light_of(settings: Settings, evidence: Evidence | None) -> Settings:
    """Return `settings` for code that was traced: where nothing states a version, that of the run holds."""
    used = evidence.environment if evidence is not None else None
    if used is None or used.tensorflow is None:
        return settings
    return replace(settings, traced=(used.tensorflow, used.keras))


def _on_targets(targets: Sequence[Target], files: int) -> Iterator[str]:
    """Yield what a reader should know of the versions that the files are meant for."""
    if files and any(target.tensorflow < (2, 0) for target in targets):
        yield "programs for TensorFlow 1 are not judged: set `tensorflow` to the version that you go to"
    for target in targets if files else ():
        if target.tensorflow >= (2, 0) and (table := target.other_kernels):
            version = ".".join(map(str, target.tensorflow))
            yield f"which ops TensorFlow {version} has no GPU kernel for is told by the table of {table}"


def _on_suppressions(result: LintResult, settings: Settings) -> Iterator[str]:
    """Yield a sentence for every suppression that is wrong, or silenced nothing."""
    if result.suppressions is None:
        return
    yield from map(str, result.suppressions.malformed)
    unused = list(result.suppressions.unused())
    if not unused:
        return
    from tflint_gpu.checks.catalogue import all_pages

    statically = [page for page in all_pages() if "static" in page.phases and settings.enables(page)]
    known = rule_names()
    for suppression, rule in unused:
        cell = f":cell {suppression.cell}" if suppression.cell is not None else ""
        where = f"{suppression.path}{cell}:{suppression.line}"
        if rule and rule.lower() not in map(str.lower, known):
            yield f"{where}: unknown rule {rule!r} in a suppression{nearest(rule, known)}"
        elif not rule or any(closeness(page, (rule,)) for page in statically):
            yield f"{where}: this suppression{f' of {rule}' if rule else ''} silences nothing; remove it"


def report(
    result: LintResult,
    evidence: Evidence | None,
    settings: Settings,
    outputs: Sequence[Output],
    *,
    statistics: bool = False,
    means: Means = PLAIN,
) -> int:
    """Merge, render to every one of `outputs`, tell errors and notes on stderr; return the exit status."""
    import click

    merged = assemble(result, evidence, settings, means)
    if not merged.rules and any(output.format == "sarif" for output in outputs):
        # SARIF lists the rules that were on, whether or not they had to be loaded.
        from tflint_gpu.checks.catalogue import all_pages

        merged = replace(merged, rules=tuple(page for page in all_pages() if settings.enables(page)))
    for output in outputs:
        if statistics and output.file is None:
            click.echo(counts(merged.findings), nl=False)
        else:
            _write(merged, output)
    for note in (*merged.notes, *_on_fixes(merged, outputs)):
        click.echo(f"note: {note}", err=True)
    for error in merged.errors:
        click.echo(f"error: {error}", err=True)
    return exit_status(merged.findings, bool(merged.errors), settings)


def _on_fixes(merged: Report, outputs: Sequence[Output]) -> Iterator[str]:
    """Yield how many findings can be fixed, where the report does not say so itself."""
    if any(output.file is None and output.format == "concise" for output in outputs):
        from tflint_gpu.report.fixes import offer

        if told := offer(merged.findings):
            yield told


def exit_status(findings: Iterable[Finding], failed: bool, settings: Settings) -> int:
    """Return 2 where something could not be checked, 1 with findings at or above ``fail-on``, else 0."""
    if failed:
        return 2
    limit = settings.fail_on
    return int(limit is not None and any(finding.severity >= limit for finding in findings))


def _write(merged: Report, output: Output) -> None:
    import click

    from tflint_gpu.report import render

    # The bytes of a file's name need not be UTF-8, but those of a report are.
    text = render(merged, output.format).encode(errors="replace").decode()
    if output.file is None:
        # Left to itself, `echo` strips colours where there is no terminal.
        color = False if output.color is None and os.environ.get("NO_COLOR") else output.color
        click.echo(text, nl=False, color=color)
        return
    try:
        output.file.parent.mkdir(parents=True, exist_ok=True)
        output.file.write_bytes(click.unstyle(text).encode())
    except OSError as problem:
        raise UserError(f"{output.file}: cannot be written: {problem.strerror}") from None


def counts(findings: Iterable[Finding]) -> str:
    """Return a table of how often each rule stands in the report, the most frequent first."""
    from tabulate import tabulate

    often = Counter((finding.code, finding.name, str(finding.severity)) for finding in findings)
    rows = [(count, *rule) for rule, count in sorted(often.items(), key=lambda item: (-item[1], item[0]))]
    return tabulate(rows, ("count", "code", "rule", "severity"), tablefmt="plain") + "\n" if rows else ""


def relinter(
    result: LintResult, settings: Settings, means: Means = PLAIN
) -> Callable[[Mapping[str, bytes]], Sequence[Finding]]:
    """Return a function that lints the same files with some contents replaced, for trying fixes."""

    def relint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        files = [
            replace(file, content=contents[file.path]) if file.path in contents else file for file in result.files
        ]
        return [_with_fix_as_set(finding, settings) for finding in lint(files, settings, means).findings]

    return relint


def _with_fix_as_set(finding: Finding, settings: Settings) -> Finding:
    """Return `finding` without its fix where the settings say that its rule makes none."""
    return finding if settings.fixes(finding) else replace(finding, fix=None, unfixable="")
