"""Finding and reading source files; nothing here imports or runs them."""

from __future__ import annotations

from tflint_gpu.source.discovery import discover
from tflint_gpu.source.files import Cell, Error, ReadError, Source, SourceFile
from tflint_gpu.source.requirements import find_requirement_files

__all__ = [
    "Cell",
    "Error",
    "ReadError",
    "Source",
    "SourceFile",
    "discover",
    "find_requirement_files",
]
