"""Keras on JAX or torch: nothing of TensorFlow's graphs, kernels and strategies is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.pages import Page
from tflint_gpu.cli.run import lint
from tflint_gpu.config import Settings
from tflint_gpu.source.discovery import discover

OFF = ("graph", "layer-ops", "multi-gpu", "model")
PAGES = [page for page in all_pages() if page.factor in OFF and any(e.kind == "bad" for e in page.examples())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_rule_on_graphs_says_nothing_of_another_backend(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = next(example for example in page.examples() if example.kind == "bad")
    for name, text in example.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    version = example.settings.get("tensorflow")
    found = {
        backend: lint(discover(["."], settings), settings).findings
        for backend in ("tensorflow", "jax", "torch")
        for settings in [Settings(select=(page.name,), tensorflow=version, keras_backend=backend, pedantic=True)]
    }
    assert found["tensorflow"]
    assert not found["jax"] and not found["torch"]
