"""Jupyter notebooks: their Python cells as one text, with the way back to cell and line."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from tflint_gpu.source.magics import read_cell
from tflint_gpu.source.texts import Cell, Error, ReadError, Source


def read_notebook(path: str, raw: bytes) -> Source:
    """Return the code of a notebook (format 3 or 4); raises `ReadError` where it is none.

    The cells of a notebook in another language give an empty text.
    """
    notebook = _load(path, raw)
    codes = _code_cells(path, notebook) if _language(notebook) == "python" else []
    text: list[str] = []
    original: list[str] = []
    cells: list[Cell] = []
    files: dict[str, list[tuple[int, str]]] = {}
    for number, code in codes:
        cell = read_cell(code)
        if cell.kind == "file":
            files.setdefault(cell.name, []).append((number, cell.text))
        if cell.kind != "python":
            continue
        lines = cell.text.split("\n")
        cells.append(Cell(number, len(text) + 1, len(lines)))
        text += lines
        original += code.split("\n")
    return Source(
        path,
        "\n".join(text),
        name=path,
        # A notebook without code still needs a cell for `locate`.
        cells=tuple(cells) or (Cell(1, 1, 1),),
        written=tuple(_written(path, name, parts) for name, parts in files.items()),
        original="\n".join(original),
    )


def _load(path: str, raw: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ReadError(Error(path, 1, "not a notebook: no UTF-8 text; save it again from Jupyter")) from None
    except json.JSONDecodeError as problem:
        raise ReadError(
            Error(path, problem.lineno, f"not a notebook: {problem.msg}; save it again from Jupyter")
        ) from None
    except RecursionError:
        raise ReadError(Error(path, 1, "nested too deeply to be read; exclude it")) from None
    if not isinstance(notebook, dict):
        raise ReadError(Error(path, 1, "not a notebook: no JSON object; save it again from Jupyter"))
    return notebook


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        language = part.get(name) if isinstance(part, dict) else None
        if isinstance(language, str) and language:
            return "python" if language.lower() in ("python", "ipython", "python3") else language.lower()
    return "python"


def _code_cells(path: str, notebook: dict[str, Any]) -> list[tuple[int, str]]:
    sheets = notebook.get("worksheets")
    if isinstance(sheets, list):
        cells: Any = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells", [])]
    else:
        cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise ReadError(Error(path, 1, "not a notebook: it has no cells; save it again from Jupyter"))
    return [
        (number, _text(cell.get("source", cell.get("input", ""))))
        for number, cell in enumerate(cells, 1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]


def _text(source: object) -> str:
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _written(path: str, name: str, parts: list[tuple[int, str]]) -> Source:
    cells: list[Cell] = []
    lines: list[str] = []
    for number, text in parts:
        part = text.split("\n")
        cells.append(Cell(number, len(lines) + 1, len(part)))
        lines += part
    # The magic writes relative to the notebook's own folder.
    name = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    return Source(path, "\n".join(lines), name=name, cells=tuple(cells))
