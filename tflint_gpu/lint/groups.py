"""One group of files joined by imports: read it, run the rules on it, and remember what came of that."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tflint_gpu.lint.records import MALFORMED, error_of, error_record, finding_of, record_of
from tflint_gpu.source.texts import Error

if TYPE_CHECKING:
    from tflint_gpu.checks.check import Check
    from tflint_gpu.config import Settings
    from tflint_gpu.findings import Finding
    from tflint_gpu.lint.cache import Cache
    from tflint_gpu.program.modules import ModuleIndex
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Program
    from tflint_gpu.source.texts import Source

#: Set, it makes the program show where a fault of its own arose.
DEBUG = "TFLINT_GPU_DEBUG"

_MANY_LINES = 30_000


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules find in a group, or in several: before anything is silenced, in the order they found it.

    `faulty` says that a rule failed, so that this is not for keeping.
    """

    findings: tuple[Finding, ...] = ()
    errors: tuple[Error, ...] = ()
    targets: tuple[Target, ...] = ()
    faulty: bool = False

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "findings": [record_of(finding) for finding in self.findings],
            "errors": [error_record(error) for error in self.errors],
            "targets": [[one.tensorflow, one.keras, one.backend, one.source] for one in self.targets],
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Found:
        """Return what `record` was made of; raises one of `MALFORMED` where it is something else."""
        from tflint_gpu.program.target import Target

        targets = tuple(
            Target((tensorflow[0], tensorflow[1]), (keras[0], keras[1]), backend, source)
            for tensorflow, keras, backend, source in record["targets"]
        )
        return cls(tuple(map(finding_of, record["findings"])), tuple(map(error_of, record["errors"])), targets)

    def without_detail(self) -> Found:
        """Return it without what only `Check.judge` reads, which may hold half of the program."""
        return replace(self, findings=tuple(replace(finding, detail={}) for finding in self.findings))


def together(parts: Sequence[Found]) -> Found:
    """Return what was found in all groups, in their order."""
    return Found(
        tuple(finding for part in parts for finding in part.findings),
        tuple(error for part in parts for error in part.errors),
        tuple(dict.fromkeys(target for part in parts for target in part.targets)),
        any(part.faulty for part in parts),
    )


def find(
    group: list[str],
    index: ModuleIndex,
    sources: dict[str, Source],
    settings: Settings,
    checks: Sequence[Check],
    begun: Callable[[Program], None] | None = None,
) -> Found:
    """Read the files of `group` and return what `checks` find in them; for `begun` see `build.read_group`."""
    from tflint_gpu.program.build import read_group

    errors: list[Error] = []
    program = read_group(group, index, sources, settings, errors, begun)
    found: list[Finding] = []
    faults: list[Error] = []
    for check in checks:
        found += _found_by(check, program, faults)
    return Found(tuple(found), (*errors, *faults), (program.target,), bool(faults))


def free_now_and_then(read: int, sources: Iterable[Source]) -> int:
    """Free the memory of programs that are done with before `sources` are read, each time many lines were.

    `read` is how many lines were read since this was done; returns how many it will be. The command line lets the
    cycle collector rest, and a program is one great cycle.
    """
    if read > _MANY_LINES:
        gc.collect()
        read = 0
    return read + sum(source.text.count("\n") for source in sources)


def _found_by(check: Check, program: Program, faults: list[Error]) -> list[Finding]:
    """Return what `check` finds, the loudest of each place; a fault of the rule becomes an error."""
    from tflint_gpu.program.history import spelled

    found: dict[object, Finding] = {}
    try:
        for told in check.find(program):
            finding = replace(told, message=spelled(told.message, program.target))
            known = found.get(finding.location)
            if known is None or finding.severity > known.severity:
                found[finding.location] = finding
    except Exception as problem:
        if os.environ.get(DEBUG):
            raise
        page = check.page
        where = program.modules[0].path if program.modules else ""
        faults.append(
            Error(
                where,
                1,
                f"rule {page.code} {page.name} failed on this program ({type(problem).__name__}: {problem}); "
                f"leave it out with --ignore {page.code}",
            )
        )
    return list(found.values())


# --- what a group asks of the files outside it


def asked_of(index: ModuleIndex) -> dict[str, Any]:
    """Return which imports `index` was asked for since `forget_asked`, and its answers."""
    return {
        "resolved": [[*asked, answer] for asked, answer in index.resolved.items()],
        "packages": [[*asked, answer] for asked, answer in index.packages.items()],
    }


def forget_asked(index: ModuleIndex) -> None:
    """Begin to note anew what `index` is asked for."""
    index.resolved.clear()
    index.packages.clear()


def recalled(cache: Cache, key: str, index: ModuleIndex) -> Found | None:
    """Return what was found in the group of `key`, None where that is not known.

    The key stands for the files of the group. Files outside it that came or went may change what its imports mean,
    so `index` is asked again what it was asked then.
    """
    entry = cache.get("group", key)
    try:
        if entry is None or not _same_answers(entry["asked"], index):
            return None
        return Found.of(entry["found"])
    except MALFORMED:
        return None


def _same_answers(asked: Mapping[str, Iterable[Sequence[Any]]], index: ModuleIndex) -> bool:
    return all(
        index.resolve(f"{folder}/", dots, module) == answer for folder, dots, module, answer in asked["resolved"]
    ) and all(
        index.is_package(f"{folder}/", dots, module) == answer
        for folder, dots, module, answer in asked["packages"]
    )


def remember(cache: Cache, key: str, found: Found, asked: Mapping[str, Any]) -> None:
    """Keep what was found in the group of `key`."""
    if not found.faulty:
        cache.put("group", key, {"found": found.record(), "asked": asked})
