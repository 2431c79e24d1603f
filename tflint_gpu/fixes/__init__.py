"""The edits that checks ask for, made with libcst so that not another byte moves."""

from __future__ import annotations

from tflint_gpu.fixes.apply import Changed, FixReport, Refusal, Relint, apply_fixes, edits_of
from tflint_gpu.fixes.write import write_changes

__all__ = ["Changed", "FixReport", "Refusal", "Relint", "apply_fixes", "edits_of", "write_changes"]
