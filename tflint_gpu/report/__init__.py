"""Findings and evidence merged into one report, and rendered."""

from __future__ import annotations

import importlib

from tflint_gpu.report.merge import Report, merge
from tflint_gpu.report.texts import Texts

__all__ = ["FORMATS", "Report", "Texts", "merge", "render"]

#: The modules that render, by the name of their format.
FORMATS = {
    "concise": "tflint_gpu.report.concise",
    "json": "tflint_gpu.report.contract",
}


def render(report: Report, form: str) -> str:
    """Return `report` in the format `form`, one of `FORMATS`, with a final line end where there is text."""
    renderer = importlib.import_module(FORMATS[form])
    return str(renderer.render(report))
