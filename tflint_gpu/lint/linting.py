"""Lint: what one look at every file tells, what the rules find, and what of it is silenced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tflint_gpu.config import Settings, closeness
from tflint_gpu.findings import Finding
from tflint_gpu.source.discovery import absolute_path
from tflint_gpu.source.files import SourceFile
from tflint_gpu.source.texts import SUPPRESSION_MARKERS, Error, ReadError

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.lint.cache import Cache
    from tflint_gpu.lint.groups import Found
    from tflint_gpu.lint.keys import Keys
    from tflint_gpu.lint.progress import Progress
    from tflint_gpu.program.build import Gathered
    from tflint_gpu.program.target import Target
    from tflint_gpu.source.suppressions import Suppressions

#: A file that holds none of these is not TensorFlow's business; it is read only if another one imports it.
_FRAMEWORKS = (b"tensorflow", b"keras")


@dataclass(frozen=True)
class LintResult:
    """What the static half found.

    `findings` are what is left after suppressions and ``per-file-ignores``, hints among them; `suppressed` are the
    rest. `errors` are files that could not be checked, `left_out` parts of files. `ran` says that the
    rules had something to look at; `checks` are the rules, empty where none had to be loaded.
    """

    files: tuple[SourceFile, ...]
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    errors: tuple[Error, ...] = ()
    left_out: tuple[Error, ...] = ()
    checks: tuple[Check, ...] = ()
    targets: tuple[Target, ...] = ()
    suppressions: Suppressions | None = field(default=None, compare=False)
    ran: bool = False


@dataclass(frozen=True)
class Means:
    """How a lint is done, which changes nothing of what it finds.

    `jobs` is the number of processes, 0 for as many as pay. With a `cache`, or several processes, findings come
    without the `detail` that evidence is judged by.
    """

    cache: Cache | None = None
    jobs: int = 1
    progress: Progress | None = None


#: One process, nothing kept: findings have all their detail.
PLAIN = Means()


def lint(files: Iterable[SourceFile], settings: Settings, means: Means = PLAIN) -> LintResult:
    """Run every enabled rule over `files`, without evidence."""
    files = tuple(sorted(files, key=lambda file: file.path))
    survey = _survey(files, digests=means.cache is not None)
    if not survey.relevant:
        return LintResult(files, errors=tuple(survey.errors))
    found, checks = _found(survey, settings, means)
    errors = {*survey.errors, *found.errors}
    suppressions = _suppressions(survey.marked)
    kept, suppressed = silence(found.findings, settings, suppressions)
    return LintResult(
        files,
        tuple(sorted(kept, key=lambda finding: (finding.location, finding.code))),
        tuple(suppressed),
        tuple(sorted(error for error in errors if error.fatal)),
        tuple(sorted(error for error in errors if not error.fatal)),
        checks,
        found.targets,
        suppressions,
        ran=True,
    )


@dataclass
class _Survey:
    """What one look at the bytes of every file tells."""

    readable: list[SourceFile] = field(default_factory=list)
    marked: list[SourceFile] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    relevant: list[SourceFile] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


def _survey(files: Iterable[SourceFile], *, digests: bool) -> _Survey:
    survey = _Survey()
    if digests:
        from tflint_gpu.lint.keys import digest
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
        if digests:
            survey.digests[file.path] = digest(raw)
        if concerned:
            survey.relevant.append(file)
        if any(marker in raw for marker in SUPPRESSION_MARKERS):
            survey.marked.append(file)
    return survey


def _found(survey: _Survey, settings: Settings, means: Means) -> tuple[Found, tuple[Check, ...]]:
    """Return what the rules find, from the cache where nothing changed, and the rules where they were loaded."""
    cache = means.cache
    if cache is None:
        return _search(survey, settings, means, None)
    from tflint_gpu.lint.groups import Found
    from tflint_gpu.lint.keys import Keys
    from tflint_gpu.lint.records import MALFORMED

    keys = Keys(settings, survey.digests)
    key = keys.of_run(survey.readable)
    entry = cache.get("run", key)
    if entry is not None:
        try:
            return Found.of(entry), ()
        except MALFORMED:
            pass
    found, checks = _search(survey, settings, means, keys)
    if not found.faulty and _on_disk(survey.readable) and _unchanged(survey.readable, survey.digests):
        cache.put("run", key, found.record())
    return found, checks


def _on_disk(files: Iterable[SourceFile]) -> bool:
    return all(file.content is None for file in files)


def _unchanged(files: Iterable[SourceFile], digests: dict[str, str]) -> bool:
    """Say whether the files are still as they were when the run began: what was read is what the key says."""
    try:
        return all(file.digest() == digests[file.path] for file in files)
    except ReadError:
        return False


def _search(
    survey: _Survey, settings: Settings, means: Means, keys: Keys | None
) -> tuple[Found, tuple[Check, ...]]:
    """Read the files group by group and return what the rules find in them, and the rules."""
    from tflint_gpu.checks import load
    from tflint_gpu.lint.groups import Found, together
    from tflint_gpu.program.build import gather

    checks = tuple(load(settings))
    gathered = gather(survey.readable)
    groups = gathered.groups(_needles(checks))
    if means.progress is not None:
        means.progress.total = sum(map(len, groups))
    whole = together(_Search(survey, settings, means, keys, checks, gathered, groups).parts())
    read = {name for group in groups for name in group}
    passed_over = [file for file in survey.relevant if file.explicit and file.path not in read]
    errors = (*gathered.errors, *whole.errors, *filter(None, map(_not_python, passed_over)))
    return Found(whole.findings, errors, whole.targets, whole.faulty), checks


@dataclass(frozen=True)
class _Search:
    """The groups of one run, and all that is needed to know what is in them."""

    survey: _Survey
    settings: Settings
    means: Means
    keys: Keys | None
    checks: tuple[Check, ...]
    gathered: Gathered
    groups: list[list[str]]

    def parts(self) -> list[Found]:
        """Return what is found in each group, in their order."""
        done = self._recalled()
        self._in_processes(done)
        self._here(done)
        return [done[number] for number in range(len(self.groups))]

    def _recalled(self) -> dict[int, Found]:
        cache, keys = self.means.cache, self.keys
        if cache is None or keys is None:
            return {}
        from tflint_gpu.lint.groups import recalled

        index = self.gathered.index
        known = [recalled(cache, keys.of_group(self._members(group)), index) for group in self.groups]
        return {number: found for number, found in enumerate(known) if found is not None}

    def _in_processes(self, done: dict[int, Found]) -> None:
        missing = [number for number in range(len(self.groups)) if number not in done]
        if self.means.jobs == 1 or len(missing) < 2:
            return
        from tflint_gpu.lint.workers import find_in_processes, useful_jobs

        groups = [self.groups[number] for number in missing]
        jobs = self.means.jobs or useful_jobs([self._lines(group) for group in groups])
        if jobs == 1:
            return
        for place, found, asked in find_in_processes(min(jobs, len(groups)), groups, self.gathered, self.settings):
            done[missing[place]] = found
            self._keep(missing[place], found, asked)

    def _here(self, done: dict[int, Found]) -> None:
        from tflint_gpu.lint.groups import asked_of, find, forget_asked, free_now_and_then

        index, sources, progress = self.gathered.index, self.gathered.sources, self.means.progress
        read = 0
        # The largest come last: what they leave behind need not be cleared away for others.
        for number in sorted(range(len(self.groups)), key=lambda number: self._lines(self.groups[number])):
            if number in done:
                continue
            group = self.groups[number]
            read = free_now_and_then(read, (sources[name] for name in group))
            forget_asked(index)
            begun = progress.begun if progress is not None else None
            done[number] = find(group, index, sources, self.settings, self.checks, begun)
            self._keep(number, done[number], asked_of(index))

    def _keep(self, number: int, found: Found, asked: dict[str, Any]) -> None:
        group, cache, keys = self.groups[number], self.means.cache, self.keys
        if self.means.progress is not None:
            self.means.progress.ended(len(group))
        if cache is None or keys is None:
            return
        from tflint_gpu.lint.groups import remember

        members = self._members(group)
        files = [self.files[path] for _, path in members]
        if _on_disk(files) and _unchanged(files, self.survey.digests):
            remember(cache, keys.of_group(members), found, asked)

    def _members(self, group: list[str]) -> list[tuple[str, str]]:
        """Return the path that imports see and the file of each source in `group`."""
        return [(name, self.gathered.sources[name].path) for name in group]

    @cached_property
    def files(self) -> dict[str, SourceFile]:
        """The files that could be read, by path."""
        return {file.path: file for file in self.survey.readable}

    def _lines(self, group: list[str]) -> int:
        return sum(self.gathered.sources[name].text.count("\n") for name in group)


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
    for finding in findings:
        path = finding.location.path
        ignored = bool(settings.per_file_ignores) and settings.ignored_in(absolute_path(path), finding)
        silent = suppressions is not None and suppressions.silences(finding)
        (silenced if ignored or silent else kept).append(finding)
    return kept, silenced
