"""Finding and reading source files; nothing here imports or runs them."""

from __future__ import annotations

from tflint_gpu.source.discovery import discover
from tflint_gpu.source.files import SourceFile
from tflint_gpu.source.requirements import find_requirement_files
from tflint_gpu.source.texts import Cell, Error, ReadError, Source

__all__ = [
    "Cell",
    "Error",
    "ReadError",
    "Source",
    "SourceFile",
    "discover",
    "find_requirement_files",
]
