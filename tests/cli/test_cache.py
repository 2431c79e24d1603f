"""``check`` says the same to the byte with a cache, without one and in several processes; what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lint.conftest import project
from tflint_gpu.cli import invoke

__all__ = ["project"]

ROOT = Path(__file__).parents[2]
CACHE = ".tflint_gpu_cache"
FORMATS = ("full", "concise", "json", "github", "sarif")

Told = tuple[int, str, str]


@pytest.fixture
def check(project: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Return a function that runs ``check`` on the project and returns status, output and errors."""

    def called(*arguments: str) -> Told:
        status = invoke(["check", "--isolated", *arguments])
        return status, *capfd.readouterr()

    return called


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_the_same_to_the_byte(check: Callable[..., Told], form: str) -> None:
    flags = ("--output-format", form, "--pedantic")
    expected = check(*flags, "--no-cache", "--jobs", "1")
    assert expected[0] == 2
    assert "eager.py" in expected[1]
    assert not Path(CACHE).exists()
    assert check(*flags, "--no-cache", "--jobs", "2") == expected
    assert check(*flags, "--jobs", "2") == expected
    assert Path(CACHE).is_dir()
    assert check(*flags) == expected
    assert check(*flags, "--jobs", "2") == expected


def test_a_warm_run_parses_nothing(check: Callable[..., Told], monkeypatch: pytest.MonkeyPatch) -> None:
    import ast

    import libcst

    expected = check("--output-format", "json")

    def parsed(*_: object, **__: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(ast, "parse", parsed)
    monkeypatch.setattr(libcst, "parse_module", parsed)
    assert check("--output-format", "json") == expected


def test_the_cache_may_lie_elsewhere(check: Callable[..., Told], tmp_path: Path) -> None:
    check("--cache-dir", str(tmp_path / "c"))
    assert not Path(CACHE).exists()
    assert (tmp_path / "c/CACHEDIR.TAG").is_file()


def test_the_cache_lies_beside_the_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "tflint-gpu.toml").write_text("")
    monkeypatch.chdir(project / "ours")
    invoke(["check"])
    assert (project / CACHE).is_dir()
    assert not (project / "ours" / CACHE).exists()
    assert invoke(["clean"]) == 0
    assert not (project / CACHE).exists()


def test_a_place_that_cannot_be_written_changes_nothing(check: Callable[..., Told]) -> None:
    assert check("--cache-dir", "eager.py/c") == check("--no-cache")


def test_evidence_is_judged_without_a_cache(check: Callable[..., Told], tmp_path: Path) -> None:
    from tflint_gpu.trace.evidence import Environment, Evidence, save

    save(Evidence(1, "0.1.0", "", (), Environment(), None), tmp_path / "evidence.json")
    check("--evidence", str(tmp_path / "evidence.json"))
    assert not Path(CACHE).exists()


def test_fixes_are_tried_and_written_with_a_cache_as_without(check: Callable[..., Told], project: Path) -> None:
    expected = check("--no-cache", "--diff")
    assert "prefetch(" in expected[1]
    assert check("--diff") == expected
    assert check("--diff") == expected
    status, out, _ = check("--fix")
    assert "prefetch(" in (project / "ours/data.py").read_text()
    assert (status, out) == check("--no-cache")[:2]


def test_runs_side_by_side_do_each_other_no_harm(check: Callable[..., Told], project: Path) -> None:
    expected = check("--no-cache")
    command = [sys.executable, "-m", "tflint_gpu", "check", "--isolated"]
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    told = [process.communicate(timeout=120) for process in running]
    assert [(process.returncode, *texts) for process, texts in zip(running, told, strict=True)] == [expected] * 3
    assert check() == expected
    left = [path.name for path in (project / CACHE).rglob("*") if path.is_file() and path.suffix != ".json"]
    assert set(left) == {".gitignore", "CACHEDIR.TAG", "tidied"}


def test_clean_removes_what_is_kept_and_says_so(
    check: Callable[..., Told], capfd: pytest.CaptureFixture[str]
) -> None:
    check()
    assert invoke(["clean"]) == 0
    assert "removed" in capfd.readouterr().err
    assert not Path(CACHE).exists()
    assert invoke(["clean"]) == 0
    assert "no cache" in capfd.readouterr().err
    assert invoke(["clean", "--cache-dir", "ours"]) == 2
    assert "not a cache" in capfd.readouterr().err
    assert Path("ours/data.py").is_file()


def test_files_are_shown_and_not_checked(check: Callable[..., Told]) -> None:
    status, out, err = check("--show-files", "--exclude", "old.py")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "binary.py",
        "book.ipynb",
        "eager.py",
        "none.py",
        "ours/__init__.py",
        "ours/data.py",
        "silent.py",
        "train.py",
    ]


def test_statistics_count_rules(check: Callable[..., Told]) -> None:
    expected = check("--no-cache", "--statistics")
    rows = [line.split() for line in expected[1].splitlines()[1:]]
    assert ["TFG602", "run-eagerly-enabled"] in [row[1:3] for row in rows]
    counts = [int(row[0]) for row in rows]
    assert counts == sorted(counts, reverse=True)
    check()
    assert check("--statistics") == expected


def test_settings_are_shown_with_where_they_come_from(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.tflint-gpu]\nignore = ["TFG101"]\nexclude = ["old.py"]\nextend-select = ["graph"]\n'
        '[tool.tflint-gpu.severity]\nTFG602 = "info"\n'
        '[tool.tflint-gpu.per-file-ignores]\n"tests/*" = ["all"]\n'
        "[tool.tflint-gpu.rules.tiny-batch]\nvision = 8\n"
    )
    shown = ["check", "--show-settings", "--exclude", "x*", "--tensorflow", "2.15", "--fail-on", "never"]
    assert invoke([*shown, "--config", 'severity.TFG101 = "hint"']) == 0
    out = capfd.readouterr().out
    told = dict(line.split(" = ", 1) for line in out.splitlines() if not line.startswith("#"))
    told = {key: " ".join(value.split()) for key, value in told.items()}
    assert told == {
        "select": '["all"] # default',
        "ignore": '["TFG101"] # pyproject.toml',
        "extend-select": '["graph"] # pyproject.toml',
        "per-file-ignores": '{ "tests/*" = ["all"] } # pyproject.toml',
        "exclude": '["old.py", "x*"] # pyproject.toml, command line',
        "tensorflow": '"2.15" # command line',
        "fail-on": '"never" # command line',
        "severity": '{ "TFG602" = "info", "TFG101" = "hint" } # pyproject.toml, command line',
        "fixable": '["all"] # default',
        "unfixable": "[] # default",
        "extend-fixable": "[] # default",
        "rules": '{ "tiny-batch" = { "vision" = 8 } } # pyproject.toml',
    }
    invoke(["check", "--show-settings", "--select", "TFG602"])
    lines = capfd.readouterr().out.splitlines()
    told = dict(line.split(" = ", 1) for line in lines if not line.startswith("#"))
    assert told["select"].split("#")[1] == " command line"
    assert told["ignore"].split() == ["[]", "#", "default"]


def test_a_terminal_is_told_how_far_a_long_run_is(project: Path) -> None:
    import pty

    master, slave = pty.openpty()
    program = (
        "import tflint_gpu.lint.progress as p, tflint_gpu.cli as c; p.Progress.__init__.__defaults__ = (0.001,); "
        "raise SystemExit(c.invoke(['check', '--isolated', '--no-cache']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    out = process.communicate(timeout=120)[0].decode()
    shown = os.read(master, 100_000).decode()
    os.close(master)
    assert "files read" in shown
    assert "files read" not in out
    assert "eager.py" in out
    assert shown.rpartition("files read")[2].partition("\x1b[K")[1]
