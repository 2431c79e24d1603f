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
}


def render(report: Report, form: str, *, colour: bool = False) -> str:
    """Return `report` in the format `form`, one of `FORMATS`; `colour` is for ``full``, and others have none."""
    renderer = importlib.import_module(FORMATS[form])
    return str(renderer.render(report, colour=True) if colour and form == "full" else renderer.render(report))
