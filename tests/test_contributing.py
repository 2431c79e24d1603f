"""CONTRIBUTING is true: the rule that it adds passes the tests of all rules; each dependency is accounted for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_FILE = re.compile(r"^````(?:markdown|python) (\S+)\n(.*?)^````$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project with the files of CONTRIBUTING's example written into it."""
    for folder in ("tflint_gpu", "rules", "tests/checks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "tests/__init__.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    for name, text in _FILE.findall(TEXT):
        assert (tmp_path / name).parent.is_dir(), f"{name}: no such room"
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_rule_of_the_example_works_as_soon_as_its_two_files_are_there(copy: Path) -> None:
    tested = run(
        copy, "pytest", "-q", "-p", "no:cacheprovider", "tests/checks/test_pages.py", "-k", "large-prefetch"
    )
    explained = run(copy, "tflint_gpu", "explain", "large-prefetch")

    assert tested.returncode == 0, tested.stdout
    assert int(re.findall(r"(\d+) passed", tested.stdout)[0]) >= 5, tested.stdout
    assert explained.stdout.startswith("# large-prefetch (TFG190)\n"), explained.stderr


def test_the_example_takes_no_code_of_a_rule_that_is_there() -> None:
    (code,) = re.findall(r'^code = "(TFG\d+)"', TEXT, re.MULTILINE)
    taken = [
        page for page in (ROOT / "rules").glob("*/*.md") if f'code = "{code}"' in page.read_text(encoding="utf-8")
    ]

    assert taken == []


def test_each_dependency_has_its_line() -> None:
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    base = [*project["project"]["dependencies"], *(one for extra in extras for one in extra)]
    table, development = re.search(r"^## Dependencies\n(.*?)^(For development.*)", TEXT, re.M | re.S).groups()  # type: ignore[union-attr]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}

    assert names(re.findall(r"^\| ([\w-]+)", table, re.MULTILINE)) - {"package", "---"} == names(base)
    for name in names([one for group in project["dependency-groups"].values() for one in group]):
        assert name.removeprefix("types-") in development, f"{name} is not accounted for"
