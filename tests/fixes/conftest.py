"""Fixing a text: a stand-in for the rules finds calls by their text, so that no analyser is needed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping

import pytest

from tflint_gpu.findings import Change, Finding, Fix, Location, Severity
from tflint_gpu.fixes import FixReport, apply_fixes, edits_of
from tflint_gpu.fixes.document import open_document

PREFETCH = {"kind": "append-method", "method": "prefetch", "argument": "{tensorflow.data.AUTOTUNE}"}
PARALLEL = {
    "kind": "add-argument",
    "name": "num_parallel_calls",
    "value": "{tensorflow.data.AUTOTUNE}",
    "position": "1",
}
HEAD = "import tensorflow as tf\n"


def case(name: str, text: str, call: str, expected: str) -> object:
    """Name a case; all texts are dedented and stand below an import of TensorFlow."""
    return pytest.param(
        HEAD + textwrap.dedent(text), textwrap.dedent(call), HEAD + textwrap.dedent(expected), id=name
    )


def place_of(text: str, needle: str) -> Location:
    """Return where `needle` stands in ``a.py`` of `text`, line ends of any kind."""
    text, needle = text.replace("\r\n", "\n"), needle.replace("\r\n", "\n")
    start = text.index(needle)
    end = start + len(needle)
    (line, column), (end_line, end_column) = (
        (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) for at in (start, end)
    )
    return Location("a.py", line, column, end_line, end_column)


def finding_at(location: Location, code: str = "TFG101", safety: str = "safe", **change: str) -> Finding:
    """Return a finding whose fix is the edit `change` at `location`."""
    kind = change.pop("kind")
    fix = Fix(safety, "a fix", (Change(kind, location, tuple(sorted(change.items()))),))
    return Finding(code, "a-rule", "input-pipeline", Severity.WARNING, "The GPU waits.", location, fix=fix)


@pytest.fixture
def fixed() -> Callable[..., str]:
    """Return a function (text, call, edit) -> the text with that edit made at that call, or why it was not."""

    def fix(text: str, call: str, change: Mapping[str, str], tensorflow: tuple[int, int] = (2, 15)) -> str:
        finding = finding_at(place_of(text, call), **change)
        edits, reason = edits_of(finding, lambda _: text.encode(), tensorflow)
        return reason or open_document("a.py", text.encode()).apply(edits).decode()

    return fix


class Project:
    """Files in memory, and two rules: every ``.map(`` wants parallel calls, every ``.batch(…)`` a prefetch."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = {path: text.encode() for path, text in files.items()}
        self.lints = 0

    def lint(self, contents: Mapping[str, bytes]) -> list[Finding]:
        """Return all findings, with some files' bytes replaced."""
        self.lints += 1
        found = []
        for path, raw in {**self.files, **contents}.items():
            text = raw.decode()
            found += [
                finding_at(_at(path, text, call), "TFG102", **PARALLEL)
                for call in re.finditer(r"\w+\.map\(((?!num_parallel)[^()])*\)", text)
            ]
            found += [
                finding_at(_at(path, text, call), "TFG101", **PREFETCH)
                for call in re.finditer(r"\w+\.batch\([^()]*\)(?!\.prefetch)", text)
            ]
        return found

    def fix(self, **options: object) -> FixReport:
        """Apply the fixes of everything that `lint` finds."""
        return apply_fixes(
            self.lint({}),
            self.files.get,
            self.lint,
            tensorflow=(2, 15),
            **options,  # type: ignore[arg-type]
        )


def _at(path: str, text: str, call: re.Match[str]) -> Location:
    (line, column), (end_line, end_column) = (
        (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) for at in call.span()
    )
    return Location(path, line, column, end_line, end_column)
