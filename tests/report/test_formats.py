"""Every format over the same three reports, compared with the text that it should give."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tflint_gpu import __version__
from tflint_gpu.report import FORMATS, Report, render

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sample", ["static", "traced", "notebook"])
def test_golden(sample: str, form: str, samples: dict[str, Callable[[], Report]]) -> None:
    report = samples[sample]()
    text = click.unstyle(render(report, form)) if form == "full" else render(report, form)
    root = report.texts.root.resolve().as_uri()
    text = text.replace(root, "file:///ROOT").replace(f'"{__version__}"', '"VERSION"')
    golden = GOLDEN / f"{sample}.{form}"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_report_is_text_too(form: str, samples: dict[str, Callable[[], Report]]) -> None:
    static = samples["static"]()
    empty = Report((), static.rules, static.target, 0)
    assert render(empty, form) == "" or render(empty, form).endswith("\n")
