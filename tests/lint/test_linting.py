"""Findings are the same with a cache or without, in one process or several, in any order of the files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lint.conftest import EAGER
from tflint_gpu.config import Settings
from tflint_gpu.lint import keys
from tflint_gpu.lint.cache import Cache
from tflint_gpu.lint.linting import LintResult, Means, lint
from tflint_gpu.program import build
from tflint_gpu.source.discovery import discover
from tflint_gpu.source.globs import Globs

SETTINGS = Settings(pedantic=True)

Run = Callable[..., LintResult]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The groups of files that were read, as they are read."""
    groups: list[list[str]] = []
    original = build.read_group

    def watched(group: list[str], *arguments: Any) -> Any:
        groups.append(group)
        return original(group, *arguments)

    monkeypatch.setattr(build, "read_group", watched)
    return groups


@pytest.fixture
def run(project: Path, tmp_path: Path, read: list[list[str]]) -> Run:
    """Return a function that lints the project with a cache beside it."""

    def linted(settings: Settings = SETTINGS, **means: Any) -> LintResult:
        read.clear()
        cache = Cache(tmp_path / "cache")
        result = lint(discover(["."], settings), settings, Means(cache, **means))
        cache.close()
        return result

    return linted


def told(result: LintResult) -> tuple[object, ...]:
    """Return everything that a result says."""
    return result.findings, result.suppressed, result.errors, result.left_out, result.targets, result.ran


def plain(settings: Settings = SETTINGS) -> tuple[object, ...]:
    return told(lint(discover(["."], settings), settings))


def test_the_project_has_a_bit_of_everything(run: Run, read: list[list[str]]) -> None:
    result = run()
    assert {finding.location.path for finding in result.findings} >= {"eager.py", "ours/data.py", "book.ipynb"}
    assert any(finding.fix for finding in result.findings)
    assert result.suppressed
    assert {error.path for error in result.errors} == {"binary.py", "old.py"}
    assert result.left_out
    assert ["ours/data.py", "train.py"] in read
    assert len(read) > 3


def test_nothing_is_read_twice_and_the_same_is_told(run: Run, read: list[list[str]]) -> None:
    expected = plain()
    assert told(run()) == expected
    assert read
    assert told(run()) == expected
    assert read == []


def test_only_the_group_that_changed_is_read_again(run: Run, read: list[list[str]], project: Path) -> None:
    run()
    data = project / "ours/data.py"
    data.write_text("# moved\n" + data.read_text())
    result = run()
    assert read == [["ours/data.py", "train.py"]]
    assert told(result) == plain()


def test_a_copy_of_the_project_elsewhere_is_known(
    run: Run, read: list[list[str]], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = told(run())
    moved = project.rename(project.with_name("fresh-checkout"))
    for path in moved.rglob("*.py"):
        path.write_bytes(path.read_bytes())  # other times, same content
    monkeypatch.chdir(moved)
    assert told(run()) == expected
    assert read == []


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], Settings | None]] = {
    "requirement": lambda folder, patch: (folder / "requirements.txt").write_text("tensorflow==2.6\n") and None,
    "lock file": lambda folder, patch: (folder / "uv.lock").write_text("") and None,
    "backend": lambda folder, patch: patch.setenv("KERAS_BACKEND", "jax"),
    "target": lambda folder, patch: replace(SETTINGS, tensorflow="2.4"),
    "select": lambda folder, patch: replace(SETTINGS, select=("TFG101",)),
    "severity": lambda folder, patch: replace(SETTINGS, severity={"TFG602": SETTINGS.fail_on}),
    "option": lambda folder, patch: replace(SETTINGS, rules={"tiny-batch": {"vision": 1000}}),
    "installed": lambda folder, patch: patch.setattr(
        keys, "_installed", lambda: [("x", "tensorflow-1.dist-info")]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_findings_depend_on_makes_a_new_run(
    run: Run, read: list[list[str]], project: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    run()
    (project / "uv.lock").write_text("version = 1\n")
    run()
    settings = CHANGES[change](project, monkeypatch) or SETTINGS
    result = run(settings)
    assert len(read) > 3
    assert told(result) == plain(settings)


@pytest.mark.parametrize("free", ["fail_on", "per_file_ignores", "pedantic"])
def test_what_only_the_report_depends_on_does_not(
    run: Run, read: list[list[str]], project: Path, free: str
) -> None:
    run()
    ignores = ((Globs(project, ("eager.py",)), ("all",)),)
    settings = replace(SETTINGS, **{free: {"fail_on": None, "per_file_ignores": ignores, "pedantic": False}[free]})
    result = run(settings)
    assert read == []
    assert told(result) == plain(settings)


def test_a_file_that_changes_what_an_import_means_is_noticed(
    run: Run, read: list[list[str]], project: Path
) -> None:
    lazy = 'import importlib\nimport tensorflow as tf\nmodule = importlib.import_module("later")\n'
    (project / "lazy.py").write_text(f"{lazy}module.go()\n")
    run()
    (project / "later").mkdir()
    (project / "later/inner.py").write_text("x = 1\n")
    run()
    assert ["lazy.py"] in read
    assert ["eager.py"] not in read


def test_the_order_of_files_does_not_matter(project: Path) -> None:
    files = discover(["."], SETTINGS)
    expected = told(lint(files, SETTINGS))
    for seed in range(3):
        random.Random(seed).shuffle(files)
        assert told(lint(files, SETTINGS)) == expected


@pytest.mark.parametrize("method", [None, "spawn"])
def test_several_processes_find_what_one_finds(
    run: Run, read: list[list[str]], monkeypatch: pytest.MonkeyPatch, method: str | None
) -> None:
    from tflint_gpu.lint import workers

    expected = plain()
    original = workers.find_in_processes
    monkeypatch.setattr(workers, "find_in_processes", lambda *arguments: original(*arguments, method))
    assert told(run(jobs=2)) == expected
    assert read == []  # not in this process
    assert told(run()) == expected
    assert read == []


def test_what_a_process_that_died_left_is_done_here(
    run: Run, read: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tflint_gpu.lint import workers

    expected = plain()
    monkeypatch.setattr(workers, "_hand_over", lambda pipe, group, gathered: pipe.send("no group at all"))
    assert told(run(jobs=2)) == expected
    assert len(read) > 3


def test_a_rule_that_failed_is_asked_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflint_gpu.checks.graph.run_eagerly_enabled import RunEagerlyEnabled

    with monkeypatch.context() as patch:
        patch.setattr(RunEagerlyEnabled, "find", lambda self, program: 1 / 0)
        assert any("TFG602" in error.message for error in run().errors)
    assert told(run()) == plain()


def test_entries_of_another_form_count_as_none(run: Run, tmp_path: Path, read: list[list[str]]) -> None:
    expected = told(run())
    for wrong in (None, [], {"findings": [[1]], "errors": [], "target": None}, {"found": {}, "asked": []}):
        for path in (tmp_path / "cache").glob("*/*.json"):
            text = json.dumps(wrong).encode()
            path.write_bytes(f"{keys.digest(text)}\n".encode() + text)
        assert told(run()) == expected
        assert len(read) > 3


def test_a_file_that_changes_meanwhile_is_not_taken_for_what_it_was(
    run: Run, project: Path, read: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = build.gather

    def edited(files: Any) -> Any:
        gathered = original(files)
        (project / "eager.py").write_text(EAGER.replace("True", "False"))
        return gathered

    with monkeypatch.context() as patch:
        patch.setattr(build, "gather", edited)
        run()
    (project / "eager.py").write_text(EAGER)
    result = run()
    assert read == [["eager.py"]]
    assert told(result) == plain()


def test_text_that_is_not_on_the_disk_is_not_kept(project: Path, tmp_path: Path, read: list[list[str]]) -> None:
    files = [replace(file, content=file.raw()) for file in discover(["eager.py"], SETTINGS)]
    for _ in range(2):
        read.clear()
        lint(files, SETTINGS, Means(Cache(tmp_path / "cache")))
        assert read == [["eager.py"]]


def test_nothing_of_tensorflow_needs_no_cache(project: Path, tmp_path: Path) -> None:
    result = lint(discover(["none.py"], SETTINGS), SETTINGS, Means(Cache(tmp_path / "cache")))
    assert not result.ran
    assert not (tmp_path / "cache").exists()
