"""README is true: help texts, tables, settings, suppressions and commands are what the program has."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.cli import cli
from tflint_gpu.config import load_settings
from tflint_gpu.config_keys import KEYS
from tflint_gpu.findings import Verdict
from tflint_gpu.report import FORMATS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "readme.py"))
PARTS = {match[2]: match[3] for match in SCRIPT["PART"].finditer(TEXT)}


def section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"README has no section {heading!r}"
    return found[1]


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[number]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| ([^|]*[^|\s:-]) \|", text, re.MULTILINE)


def run(*command: str) -> Result:
    return CliRunner().invoke(cli, list(command), prog_name="tflint-gpu", standalone_mode=True)


@pytest.mark.parametrize("name", SCRIPT["PARTS"])
def test_what_the_program_tells_is_up_to_date(name: str) -> None:
    assert PARTS[name] == SCRIPT["PARTS"][name](), "run `python scripts/readme.py`"


def test_the_demo_tells_of_rules_and_lines_that_are_there() -> None:
    shown = PARTS["make demo"]
    script = (ROOT / "fixtures/slow_input/train.py").read_text(encoding="utf-8").splitlines()
    rules = {(page.code, page.name) for page in all_pages()}
    quoted = re.findall(r"^ *>? *(\d+) \| (.*)$", shown, re.MULTILINE)

    named = re.findall(r"(TFG\d+) ([a-z0-9-]+)", shown)
    assert named
    assert set(named) <= rules
    assert quoted
    assert [(number, text) for number, text in quoted if script[int(number) - 1].rstrip() != text.rstrip()] == []
    for verdict in ("confirmed", "masked"):
        assert f"[{verdict}]" in shown


USAGE = [
    line.strip().partition("  #")[0].strip() for line in TEXT.splitlines() if line.startswith("    tflint-gpu ")
]


@pytest.mark.parametrize("line", USAGE)
def test_every_command_line_is_one_that_is_understood(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    command.make_context(name, arguments)


def test_the_exit_statuses_are_those_that_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clean.py").write_text("import tensorflow as tf\n")
    Path("slow.py").write_text(block("python").replace("#", "# not "))
    commands = {0: ("check", "clean.py"), 1: ("check", "slow.py"), 2: ("check", "missing.py")}

    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    from tflint_gpu.cli import check, invoke

    seen = {status: invoke(command) for status, command in commands.items()}
    monkeypatch.setattr(check, "lint", interrupted)
    seen[130] = invoke(("check", "slow.py"))
    assert seen == {status: status for status in seen}
    assert [int(cell) for cell in first_cells(section("Exit status"))[1:]] == sorted(seen)


def test_the_settings_are_read_and_complete(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(block("toml"), encoding="utf-8")
    settings = load_settings(tmp_path, {})

    assert settings.origin == tmp_path / "pyproject.toml"
    assert [key for key in KEYS if not re.search(rf"^(\[.*\.)?{key}\b", block("toml"), re.MULTILINE)] == []


def test_the_suppression_silences_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(block("python"), encoding="utf-8")
    silenced = run("check", "--select", "run-eagerly-enabled", "train.py")
    Path("train.py").write_text(block("python").replace("# tflint-gpu", "# "), encoding="utf-8")
    loud = run("check", "--select", "run-eagerly-enabled", "train.py")

    assert silenced.output == ""
    assert "TFG602" in loud.output


def test_every_verdict_has_its_line() -> None:
    named = first_cells(section("How verdicts are decided"))[1:]
    assert sorted(cell.strip("`") for cell in named) == sorted(verdict.value for verdict in Verdict)


def test_what_is_called_missing_is_missing() -> None:
    formats = re.search(r"Formats (.*);", section("What is not built yet"))

    assert formats
    assert not set(re.findall(r"`(\w+)`", formats[1])) & set(FORMATS)


def test_the_hook_and_the_action_take_what_is_shown() -> None:
    yaml = pytest.importorskip("yaml")
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    action = yaml.safe_load((ROOT / "action.yml").read_text())

    (repository,) = yaml.safe_load(block("yaml"))["repos"]
    assert {hook["id"] for hook in repository["hooks"]} <= hooks
    assert hooks <= set(re.findall(r"tflint-gpu[\w-]*", block("yaml")))
    (step,) = yaml.safe_load(block("yaml", 1))
    assert set(step["with"]) <= set(action["inputs"])


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_python_versions_are_those_of_the_makefile() -> None:
    versions = re.search(r"Python (\d\.\d+) to (\d\.\d+)", TEXT)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert versions
    assert f"Python {versions[1]} to {versions[2]} is needed" in makefile
