"""The main job, for any command: lint files, merge evidence, hand the report to every output."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.config import Settings, closeness, nearest, rule_names
from tflint_gpu.errors import UserError
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.source.files import SUPPRESSION_MARKERS, Error, ReadError, SourceFile

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Program
    from tflint_gpu.report.merge import Report
    from tflint_gpu.source.suppressions import Suppressions
    from tflint_gpu.trace.evidence import Evidence

#: A file that holds none of these is not TensorFlow's business; it is read only if another one imports it.
_FRAMEWORKS = (b"tensorflow", b"keras")

#: Set, it makes the program show where a fault of its own arose.
DEBUG = "TFLINT_GPU_DEBUG"


@dataclass(frozen=True)
class LintResult:
    """What the static half found.

    `findings` are what is left after suppressions and ``per-file-ignores``, hints among them; `suppressed` are the
    rest. `errors` are files that could not be checked, `notes` sentences on what was left out. `checks` is empty
    where no file had anything to do with TensorFlow, so that the rules were never loaded.
    """

    files: tuple[SourceFile, ...]
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    errors: tuple[Error, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    target: Target | None = None
    suppressions: Suppressions | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Output:
    """A format and the file it goes to; None is standard output. `color` is None where the terminal decides."""

    format: str
    file: Path | None = None
    color: bool | None = None


def lint(files: Sequence[SourceFile], settings: Settings) -> LintResult:
    """Run every enabled rule over `files`, without evidence."""
    survey = _survey(files)
    if not survey.relevant:
        return LintResult(tuple(files), errors=tuple(survey.errors))
    from tflint_gpu.checks import load
    from tflint_gpu.program.build import build

    checks = load(settings)
    built = build(survey.readable, settings, _needles(checks))
    read = {module.path for program in built.programs for module in program.modules}
    passed_over = [file for file in survey.relevant if file.explicit and file.path not in read]
    errors = {*survey.errors, *built.errors, *filter(None, map(_not_python, passed_over))}
    found: list[Finding] = []
    for program in built.programs:
        for check in checks:
            found += _found_by(check, program, errors)
    suppressions = _suppressions(survey.marked)
    kept, suppressed = silence(found, settings, suppressions)
    return LintResult(
        tuple(files),
        tuple(sorted(kept, key=lambda finding: (finding.location, finding.code))),
        tuple(suppressed),
        tuple(sorted(error for error in errors if error.fatal)),
        tuple(str(error) for error in sorted(errors) if not error.fatal),
        tuple(checks),
        built.programs[0].target if built.programs else None,
        suppressions,
    )


@dataclass
class _Survey:
    """What one look at the bytes of every file tells."""

    readable: list[SourceFile] = field(default_factory=list)
    marked: list[SourceFile] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    relevant: list[SourceFile] = field(default_factory=list)


def _survey(files: Iterable[SourceFile]) -> _Survey:
    survey = _Survey()
    for file in files:
        try:
            raw = file.raw()
            concerned = any(word in raw for word in _FRAMEWORKS)
            # A file that was named is answered for, whatever is in it.
            if file.explicit and not concerned:
                file.read().parse()
            elif b"\0" in raw:
                file.read()
        except ReadError as problem:
            survey.errors.append(problem.error)
            continue
        survey.readable.append(file)
        if concerned:
            survey.relevant.append(file)
        if any(marker in raw for marker in SUPPRESSION_MARKERS):
            survey.marked.append(file)
    return survey


def _not_python(file: SourceFile) -> Error | None:
    """Return why a file that no rule had to look into is no Python, None where it is."""
    try:
        file.read().parse()
    except ReadError as problem:
        return problem.error
    return None


def _needles(checks: Iterable[Check]) -> tuple[bytes, ...]:
    """Return the texts of which a project must hold one; empty where some rule may fire without any."""
    texts: set[str] = set()
    for check in checks:
        if not check.needles:
            return ()
        texts.update(check.needles)
    return tuple(sorted(text.encode() for text in texts))


def _found_by(check: Check, program: Program, errors: set[Error]) -> list[Finding]:
    """Return what `check` finds, the loudest of each place; a fault of the rule becomes an error."""
    found: dict[object, Finding] = {}
    try:
        for finding in check.find(program):
            known = found.get(finding.location)
            if known is None or finding.severity > known.severity:
                found[finding.location] = finding
    except Exception as problem:
        if os.environ.get(DEBUG):
            raise
        page = check.page
        where = program.modules[0].path if program.modules else ""
        errors.add(
            Error(
                where,
                1,
                f"rule {page.code} {page.name} failed on this program ({type(problem).__name__}: {problem}); "
                f"leave it out with --ignore {page.code}",
            )
        )
    return list(found.values())


def _suppressions(files: Sequence[SourceFile]) -> Suppressions | None:
    if not files:
        return None
    from tflint_gpu.source.suppressions import Suppressions

    return Suppressions(files, closeness)


def silence(
    findings: Iterable[Finding], settings: Settings, suppressions: Suppressions | None
) -> tuple[list[Finding], list[Finding]]:
    """Part `findings` into those that stand and those that a comment or ``per-file-ignores`` silences."""
    kept: list[Finding] = []
    silenced: list[Finding] = []
    here = Path.cwd()
    for finding in findings:
        ignored = bool(settings.per_file_ignores) and settings.ignored_in(here / finding.location.path, finding)
        silent = suppressions is not None and suppressions.silences(finding)
        (silenced if ignored or silent else kept).append(finding)
    return kept, silenced


def assemble(result: LintResult, evidence: Evidence | None, settings: Settings) -> Report:
    """Return the report on `result`, judged by `evidence` where there is some; hints only with `pedantic`."""
    from tflint_gpu.program.target import Target, find_target
    from tflint_gpu.report.merge import merge
    from tflint_gpu.report.texts import Texts

    checks = result.checks
    if evidence is not None and not checks:
        from tflint_gpu.checks import load

        checks = tuple(load(settings))
    target = result.target
    if target is None:
        target = find_target((), {}, settings)[0] if settings.tensorflow else Target()
    given = {file.path: file.content for file in result.files if file.content is not None}
    merged = merge(
        result.findings,
        checks,
        evidence,
        files=len(result.files),
        target=target,
        errors=result.errors,
        suppressed=result.suppressed,
        texts=Texts(given=given),
    )
    kept, silenced = silence(merged.findings, settings, result.suppressions)
    quietest = Severity.HINT if settings.pedantic else Severity.INFO
    return replace(
        merged,
        findings=tuple(finding for finding in kept if finding.severity >= quietest),
        suppressed=(*result.suppressed, *silenced),
        notes=(*merged.notes, *result.notes, *_on_suppressions(result)),
    )


def _on_suppressions(result: LintResult) -> Iterator[str]:
    """Yield a sentence for every suppression that is wrong, or silenced nothing."""
    if result.suppressions is None:
        return
    yield from map(str, result.suppressions.malformed)
    statically = [check.page for check in result.checks if "static" in check.page.phases]
    known = rule_names()
    for suppression, rule in result.suppressions.unused():
        cell = f":cell {suppression.cell}" if suppression.cell is not None else ""
        where = f"{suppression.path}{cell}:{suppression.line}"
        if rule and rule.lower() not in known:
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
) -> int:
    """Merge, render to every one of `outputs`, tell errors and notes on stderr; return the exit status."""
    import click

    if not result.checks and any(output.format == "sarif" for output in outputs):
        # SARIF lists the rules that were on, not only those that found something.
        from tflint_gpu.checks import load

        result = replace(result, checks=tuple(load(settings)))
    merged = assemble(result, evidence, settings)
    for output in outputs:
        if statistics and output.file is None:
            click.echo(counts(merged.findings), nl=False)
        else:
            _write(merged, output)
    for note in merged.notes:
        click.echo(f"note: {note}", err=True)
    for error in merged.errors:
        click.echo(f"error: {error}", err=True)
    return exit_status(merged.findings, bool(merged.errors), settings)


def exit_status(findings: Iterable[Finding], failed: bool, settings: Settings) -> int:
    """Return 2 where something could not be checked, 1 with findings at or above ``fail-on``, else 0."""
    if failed:
        return 2
    limit = settings.fail_on
    return int(limit is not None and any(finding.severity >= limit for finding in findings))


def _write(merged: Report, output: Output) -> None:
    import click

    from tflint_gpu.report import render

    if output.file is None:
        # Left to itself, `echo` strips colours where there is no terminal.
        color = False if output.color is None and os.environ.get("NO_COLOR") else output.color
        click.echo(render(merged, output.format), nl=False, color=color)
        return
    try:
        output.file.parent.mkdir(parents=True, exist_ok=True)
        output.file.write_bytes(click.unstyle(render(merged, output.format)).encode())
    except OSError as problem:
        raise UserError(f"{output.file}: cannot be written: {problem.strerror}") from None


def counts(findings: Iterable[Finding]) -> str:
    """Return a table of how often each rule stands in the report, the most frequent first."""
    from tabulate import tabulate

    often = Counter((finding.code, finding.name, str(finding.severity)) for finding in findings)
    rows = [(count, *rule) for rule, count in sorted(often.items(), key=lambda item: (-item[1], item[0]))]
    return tabulate(rows, ("count", "code", "rule", "severity"), tablefmt="plain") + "\n" if rows else ""


def relinter(result: LintResult, settings: Settings) -> Callable[[Mapping[str, bytes]], Sequence[Finding]]:
    """Return a function that lints the same files with some contents replaced, for trying fixes."""

    def relint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        files = [
            replace(file, content=contents[file.path]) if file.path in contents else file for file in result.files
        ]
        return lint(files, settings).findings

    return relint
