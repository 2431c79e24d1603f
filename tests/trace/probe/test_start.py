"""The probe is handed to interpreters that have neither this Python nor this package."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tflint_gpu.trace.probe.start as start

FILES = sorted(Path(start.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_python_3_8_and_needs_nothing_else(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names or top == "tensorflow", f"{file.name} imports {name}"


def test_the_probe_loads_under_a_name_of_its_own() -> None:
    main = start.load_probe()
    try:
        assert main.__name__ == "_tflint_gpu_probe.main"
    finally:
        for name in [name for name in sys.modules if name.startswith(start.NAME)]:
            del sys.modules[name]
