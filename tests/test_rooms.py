"""The rooms of the house: who may import whom, and what nobody imports before it is needed."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tflint_gpu"
SHARED = {"findings", "errors", "places", "config", "PLUGINS", "__version__"}
#: What each room may import beside `SHARED`; a dotted name is a single module.
ALLOWED = {
    "source": {"source"},
    "program": {"program", "source"},
    "checks": {"checks", "program", "trace.evidence"},
    "fixes": {"fixes", "source", "program"},
    "trace": {"trace", "source", "program.kernels"},
    "lint": {"lint", "checks", "program", "source"},
    "report": {"report", "checks", "fixes", "lint.records", "program", "source", "trace"},
}
#: Each takes longer to import than a clean file to check.
HEAVY = {"tensorflow", "libcst", "msgspec", "tabulate", "google", "pynvml", "packaging", "pathspec"}


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return every module that a file imports at run time, and whether it does so as soon as it is imported."""
    found: list[tuple[str, bool]] = []
    stack = [(node, True) for node in ast.parse(path.read_text(encoding="utf-8")).body]
    while stack:
        node, at_once = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == "tflint_gpu":
                found += [(f"tflint_gpu.{alias.name}", at_once) for alias in node.names]
            else:
                found.append((node.module or "", at_once))
        later = isinstance(node, ast.FunctionDef | ast.Lambda)
        stack += [(child, at_once and not later) for child in ast.iter_child_nodes(node)]
    return tuple(found)


def files(room: str) -> list[Path]:
    return [path for path in (PACKAGE / room).rglob("*.py") if "probe" not in path.parts]


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_go_from_left_to_right(room: str) -> None:
    def allowed(name: str) -> bool:
        inner = name.removeprefix("tflint_gpu.")
        return any(inner == one or inner.startswith(f"{one}.") for one in ALLOWED[room] | SHARED)

    wrong = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in files(room)
        for name, _ in imports(path)
        if name.partition(".")[0] == "tflint_gpu" and not allowed(name)
    }
    assert wrong == set()


def test_every_room_has_its_line() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert rooms - {"cli"} == set(ALLOWED)


def test_what_is_heavy_is_imported_where_it_is_used() -> None:
    early = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in PACKAGE.rglob("*.py")
        if "probe" not in path.parts
        for name, at_once in imports(path)
        if at_once and name.partition(".")[0] in HEAVY
    }
    assert early == set()


def test_only_the_probe_imports_tensorflow() -> None:
    found = {
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if "probe" not in path.parts
        for name, _ in imports(path)
        if name.partition(".")[0] in ("tensorflow", "keras", "tf_keras")
    }
    assert found == set()
