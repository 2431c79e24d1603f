"""What is to be traced: a script, a module or a notebook, and whether it can be."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.errors import UserError

if TYPE_CHECKING:
    from tflint_gpu.source.texts import Source


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook; `number` counts all cells from 1."""

    number: int
    source: str


@dataclass(frozen=True)
class Script:
    """The program to run. `mode` is ``script``, ``module`` or ``notebook``; `name` is what the user called it.

    `folder` is where it is run: the current folder, but for a notebook its own, as Jupyter does it. `roots` are
    the folders whose files are the user's.
    """

    mode: str
    name: str
    path: Path
    folder: Path
    roots: tuple[Path, ...]
    module: str = ""
    cells: tuple[Cell, ...] = ()


def find_script(name: str) -> Script:
    """Return the script or notebook at `name`; raises `UserError` where it is missing or not Python."""
    path = Path(name)
    if path.is_dir():
        raise UserError(f"{name}: a folder; name the script in it that trains, or use -m for a package")
    if not path.exists():
        raise UserError(f"{name}: no such file; check the path, or the folder you run from")
    if not path.is_file():
        raise UserError(f"{name}: a pipe, socket or device; a script is run several times, so write it to a file")
    if any("\udc80" <= character <= "\udcff" for character in str(path.absolute())):
        raise UserError(f"{str(path.absolute())!r}: not a name in UTF-8, which evidence needs; rename it")
    source = read(name, path)
    here = Path.cwd()
    roots = (here, package_root(path.resolve().parent))
    if path.suffix == ".ipynb":
        return Script("notebook", name, path.absolute(), path.absolute().parent, roots, cells=_cells(source))
    return Script("script", name, path.absolute(), here, roots)


def cells_of(name: str, content: bytes) -> tuple[Cell, ...]:
    """Return the code cells of a notebook that holds `content`; raises `ReadError` where it is none."""
    from tflint_gpu.source.notebooks import read_notebook

    return _cells(read_notebook(name, content))


def _cells(source: Source) -> tuple[Cell, ...]:
    lines = source.lines
    return tuple(
        Cell(cell.number, "\n".join(lines[cell.first - 1 : cell.first - 1 + cell.lines]) + "\n")
        for cell in source.cells
    )


def find_module(name: str) -> Script:
    """Return the module `name` as ``python -m`` would find it from the current folder; raises `UserError`."""
    here = Path.cwd()
    sys.path.insert(0, str(here))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise UserError(f"-m {name}: a package without __main__.py; name the module in it that trains")
    except (ImportError, ValueError):
        spec = None
    finally:
        sys.path.remove(str(here))
    if spec is None or spec.origin is None:
        raise UserError(f"-m {name}: no such module seen from {here}; run from the folder that holds it")
    path = Path(spec.origin)
    read(name, path)
    return Script("module", name, path, here, (here, package_root(path.resolve().parent)), module=name)


def read(name: str, path: Path) -> Source:
    """Return the text of the file at `path`; raises `UserError` with one sentence where it is not Python."""
    from tflint_gpu.source.discovery import source_file
    from tflint_gpu.source.texts import ReadError

    try:
        source = source_file(path.absolute(), explicit=True).read()
        source.parse()
    except ReadError as problem:
        error = problem.error
        line = f":{error.line}" if error.line > 1 else ""
        raise UserError(f"{name}{line}: {error.message}") from None
    return source


def package_root(folder: Path) -> Path:
    """Return `folder`, or where it is a package the folder that holds the outermost one."""
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder
