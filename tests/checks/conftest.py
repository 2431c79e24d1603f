"""Running the rules on files that live in the test alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tflint_gpu.checks import load, load_check
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.check import Check
from tflint_gpu.cli.run import lint
from tflint_gpu.config import Settings
from tflint_gpu.findings import Finding, Location
from tflint_gpu.source.discovery import discover
from tflint_gpu.trace.evidence import SCHEMA, Device, Environment, Evidence, Step, Window

Analyse = Callable[..., list[Finding]]


@pytest.fixture
def analyse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Analyse:
    """Return a function from files (name → text, or the text of ``train.py`` alone) to findings, hints included.

    `tensorflow` is the target version, `select` the rules to run (all), `sieve` whether files without a rule's
    needles may be skipped. The files must be readable: an error fails the test.
    """

    def analysed(
        files: dict[str, str] | str,
        tensorflow: str | None = None,
        select: tuple[str, ...] = ("all",),
        *,
        sieve: bool = True,
    ) -> list[Finding]:
        for name, text in ({"train.py": files} if isinstance(files, str) else files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        settings = Settings(select=select, tensorflow=tensorflow, pedantic=True)
        with monkeypatch.context() as patch:
            for check in [] if sieve else load(settings):
                patch.setattr(type(check), "needles", ())
            result = lint(discover(["."], settings), settings)
        assert not result.errors, result.errors
        return list(result.findings)

    return analysed


@pytest.fixture
def rule() -> Callable[[str], Check]:
    """Return a function from a rule's name to its check, as an unconfigured run has it."""

    def named(name: str) -> Check:
        page = next(page for page in all_pages() if page.name == name)
        return load_check(page)(page, page.severity, dict(page.options))

    return named


def line_of(text: str, pattern: str) -> int:
    """Return the line of `text` (from 1) on which the regular expression `pattern` first matches."""
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in the text"
    return text.count("\n", 0, found.start()) + 1


def named(findings: list[Finding], name: str) -> list[Finding]:
    """Return the findings of the rule `name`."""
    return [finding for finding in findings if finding.name == name]


def evidence_of(step_ms: float = 10.0, *, gpu: bool = False, steps: int = 20, **parts: object) -> Evidence:
    """Return evidence of `steps` equal steps; `parts` are fields of `Evidence`, ``buckets`` those of each step."""
    buckets = parts.pop("buckets", {})
    assert isinstance(buckets, dict)
    device = Device("H200", "gpu", traced=True) if gpu else Device("CPU", "cpu", traced=False)
    busy = buckets.get("device_compute") if gpu else None
    whole = Evidence(
        schema=SCHEMA,
        tool="tflint-gpu",
        made_at="2026-01-01T00:00:00Z",
        command=("train.py",),
        environment=Environment(tensorflow="2.21.0", device=device),
        window=Window("fit", 10, steps, step_ms, 0.05),
        steps=tuple(Step(step_ms, busy, busy, dict(buckets)) for _ in range(steps)),
    )
    return replace(whole, **parts)  # type: ignore[arg-type]


def finding_at(check: Check, line: int, **detail: object) -> Finding:
    """Return a finding of `check` on `line` of ``train.py``."""
    return check.at(Location("train.py", line, 1), "a suspicion", **detail)
