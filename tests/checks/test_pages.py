"""Every page is true: its examples give what it says, and page and module belong together."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import tflint_gpu.checks
from tests.checks.conftest import Analyse
from tflint_gpu.checks import load_check
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.check import Check
from tflint_gpu.checks.pages import FACTORS, Example, Page
from tflint_gpu.cli.check import command as check
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.fixes import edits_of

PAGES = all_pages()
EXAMPLES = [
    pytest.param(page, example, id=f"{page.name}-{example.kind}-{example.line}")
    for page in PAGES
    for example in page.examples()
    if example.kind in ("bad", "good")
]
#: The longest message that an annotation or a terminal line shows whole.
LONGEST = 200


each_page = pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_examples_give_what_the_page_says(page: Page, example: Example, analyse: Analyse) -> None:
    findings = analyse(example.files, tensorflow=example.settings.get("tensorflow"))

    own = [finding for finding in findings if finding.code == page.code]
    loud = [
        f"{finding.location}: {finding.name}: {finding.message}"
        for finding in findings
        if finding.severity >= Severity.WARNING and finding.code != page.code
    ]
    assert loud == []
    if example.kind == "bad":
        assert own, f"{page.path}:{example.line}: the bad example gives no finding of the rule"
        assert all(len(finding.message) < LONGEST for finding in own), [finding.message for finding in own]
    else:
        assert [f"{finding.location}: {finding.message}" for finding in own] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.fix != "none"], ids=lambda page: page.name)
def test_fixes_of_the_bad_examples_leave_nothing_to_fix(page: Page, analyse: Analyse, tmp_path: Path) -> None:
    fixed = 0
    for example in page.examples():
        version = example.settings.get("tensorflow", "2.21")
        findings = analyse(example.files, version, (page.code,)) if example.kind == "bad" else []
        fixable = [finding for finding in findings if finding.fix and not declined(finding, tmp_path, version)]
        if not fixable:
            continue
        flags = ["--fix", "--unsafe-fixes", "--select", page.code, "--pedantic", "--tensorflow", version]
        done = CliRunner().invoke(check, [*flags, "."])

        left = analyse({}, version, (page.code,))
        assert done.exit_code in (0, 1), done.output
        assert [
            finding.message for finding in left if finding.fix and not declined(finding, tmp_path, version)
        ] == []
        assert len(left) <= len(findings) - len(fixable)
        assert any((tmp_path / name).read_text() != text for name, text in example.files.items())
        fixed += 1
    assert fixed, "no bad example of the page can be fixed"


@each_page
def test_page_says_how_safe_its_fixes_are(page: Page, analyse: Analyse) -> None:
    offered = {
        finding.fix.safety
        for example in page.examples()
        if example.kind == "bad"
        for finding in analyse(example.files, example.settings.get("tensorflow"), (page.code,))
        if finding.fix
    }
    # The page tells the safest of its fixes.
    assert page.fix == ("safe" if "safe" in offered else "unsafe" if offered else "none")


def declined(finding: Finding, folder: Path, version: str) -> str:
    """Return why the fix of `finding` cannot be made, "" where it can."""
    major, minor = map(int, version.split(".")[:2])
    _, reason = edits_of(finding, lambda path: (folder / path).read_bytes(), (major, minor))
    return reason


@each_page
def test_sieve_loses_no_finding(page: Page, analyse: Analyse) -> None:
    for example in page.examples():
        version = example.settings.get("tensorflow")
        sifted = analyse(example.files, tensorflow=version, select=(page.code,))
        assert sifted == analyse(example.files, tensorflow=version, select=(page.code,), sieve=False)


@each_page
def test_page_has_its_module_and_examples(page: Page) -> None:
    check = load_check(page)

    assert issubclass(check, Check)
    assert check.__doc__
    assert page.code.startswith(f"TFG{FACTORS[page.factor]}")
    assert page.path.stem == page.name
    assert page.fix in ("safe", "unsafe", "none")
    halves = {"static": check.find is not Check.find, "trace": check.judge is not Check.judge}
    halves["trace"] = halves["trace"] or check.observe is not Check.observe
    assert {phase for phase, present in halves.items() if present} == set(page.phases)
    if "static" in page.phases:
        kinds = {example.kind for example in page.examples()}
        assert kinds >= {"bad", "good"}


@each_page
def test_page_says_why_and_when_not_to_listen(page: Page) -> None:
    text = page.text()

    assert text.startswith(f"# {page.name} ({page.code})\n")
    for section in ("What it does", "Why the GPU waits", "When not to listen"):
        assert f"## {section}\n" in text
    assert ("## How the trace judges it\n" in text) == ("trace" in page.phases)
    assert "## Fix\n" in text


def test_codes_and_names_are_unique() -> None:
    assert len({page.code for page in PAGES}) == len(PAGES)
    assert len({page.name for page in PAGES}) == len(PAGES)


def test_every_module_has_its_page() -> None:
    root = Path(tflint_gpu.checks.__file__).parent
    modules = {
        f"tflint_gpu.checks.{path.parent.name}.{path.stem}"
        for path in root.glob("*/*.py")
        if path.stem != "__init__"
    }
    assert modules == {page.module for page in PAGES}
