"""Every fix of every page, on programs laid out anew: the same change to the tree, and comments stay."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.fixes.layout import comments, laid_out_anew, tree, with_tabs
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.pages import Example, Page
from tflint_gpu.cli.run import lint, relinter
from tflint_gpu.config import Settings
from tflint_gpu.fixes import FixReport, apply_fixes
from tflint_gpu.source.discovery import absolute_path, source_file

EXAMPLES = [
    pytest.param(page, example, id=f"{page.name}-{example.line}")
    for page in all_pages()
    if page.fix != "none"
    for example in page.examples()
    if example.kind == "bad"
]
SEEDS = (1, 2)


def fix(files: dict[str, str], code: str, tensorflow: str) -> tuple[dict[str, str], FixReport]:
    """Return `files` with the fixes of one rule made, and the report on that."""
    settings = Settings(select=(code,), tensorflow=tensorflow, pedantic=True)
    sources = [
        source_file(absolute_path(name), explicit=True, content=text.encode()) for name, text in files.items()
    ]
    result = lint(sources, settings)
    assert not result.errors, result.errors
    major, minor = map(int, tensorflow.split(".")[:2])
    raw = {name: text.encode() for name, text in files.items()}
    done = apply_fixes(
        result.findings, raw.get, relinter(result, settings), tensorflow=(major, minor), unsafe=True
    )
    changed = {change.path: change.after.decode() for change in done.changed}
    return {**files, **changed}, done


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_layout_makes_no_difference(
    page: Page, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    version = example.settings.get("tensorflow", "2.21")
    python = {name: text for name, text in example.files.items() if name.endswith(".py")}
    if python != example.files:
        pytest.skip("requirement files are no programs")
    plain, plainly = fix(python, page.code, version)
    for seed in SEEDS:
        chance = random.Random(seed)
        files = {name: laid_out_anew(text, chance) for name, text in python.items()}
        assert {name: tree(text) for name, text in files.items()} == {
            name: tree(text) for name, text in python.items()
        }
        if seed == SEEDS[-1]:
            files = {name: with_tabs(text).replace("\n", "\r\n") for name, text in files.items()}
        fixed, done = fix(files, page.code, version)
        for name, text in fixed.items():
            assert not Counter(comments(files[name])) - Counter(comments(text)), name
            assert ("\r\n" in text) == (text.count("\n") == text.count("\r\n") > 0), name
        # A comment may be a reason to leave a finding alone, but no layout one to change it in another way.
        if len(done.fixed) < len(plainly.fixed):
            assert any("comment" in refusal.reason for refusal in done.declined), done.declined
        else:
            assert {name: tree(text) for name, text in fixed.items()} == {
                name: tree(text) for name, text in plain.items()
            }
        assert fix(fixed, page.code, version)[0] == fixed
