"""Findings and evidence merged into one report, and rendered."""

from __future__ import annotations

import importlib

from tflint_gpu.report.merge import Report, merge
from tflint_gpu.report.texts import Texts

__all__ = ["FORMATS", "Report", "Texts", "merge", "render"]

#: The modules that render, by the name of their format.
FORMATS = {
    "full": "tflint_gpu.report.full",
    "concise": "tflint_gpu.report.concise",
    "json": "tflint_gpu.report.contract",
    "github": "tflint_gpu.report.github",
    "sarif": "tflint_gpu.report.sarif",
    "rdjson": "tflint_gpu.report.rdjson",
}


def render(report: Report, form: str) -> str:
    """Return `report` in the format `form`, one of `FORMATS`.

    The text of ``full`` is styled by ANSI codes; `click.echo` takes them out where there is no terminal.
    """
    return str(importlib.import_module(FORMATS[form]).render(report))
