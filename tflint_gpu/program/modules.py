"""The project's modules: which file an import means, and each file's tree, parsed when first asked for."""

from __future__ import annotations

import ast
import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tflint_gpu.findings import Location
from tflint_gpu.source.texts import Error, ReadError

if TYPE_CHECKING:
    from tflint_gpu.program.values import Value
    from tflint_gpu.source.texts import Source

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|(?:[^#\n\\]|\\\n)+)|import[ \t]+([^#\n]+))",
    re.MULTILINE,
)
#: ``importlib.import_module("package.module")``
_BY_NAME = re.compile(r"""\bimport_module\(\s*["'](\.*)([\w.]+)["']""")
_COMMENT = re.compile(r"#.*")
_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_TEST_FOLDER = re.compile(r"(^|/)tests?/")


@dataclass(slots=True, eq=False)
class Module:
    """A file of the project. `names` holds its module-level variables once it was executed."""

    path: str
    name: str
    source: Source
    names: dict[str, Value] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    executed: bool = False
    #: Names bound elsewhere to what this module had not defined yet: (names, name, attribute, value till then).
    waiting: list[tuple[dict[str, Value], str, str, Value]] = field(default_factory=list)
    #: Top-level packages it imports, to tell a TensorFlow module from a PyTorch one.
    packages: frozenset[str] = frozenset()
    #: Cells and files that could not be read as Python, as they are met.
    errors: list[Error] = field(default_factory=list)
    _tree: ast.Module | None = None
    _lines_with: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        """Whether the file holds unit tests, by its name or folder."""
        return bool(_TEST_FILE.search(self.path) or _TEST_FOLDER.search(self.path))

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None where the text is no Python, which is then told in `errors`."""
        if self._tree is None:
            try:
                self._tree = self.source.parse(self.errors)
            except ReadError as problem:
                self.errors.append(problem.error)
        return self._tree

    def says(self, word: str, node: Any) -> bool:
        """Say whether `word` stands anywhere in the lines of `node`."""
        if word not in self._lines_with:
            lines = enumerate(self.source.lines, 1) if word in self.source.text else ()
            self._lines_with[word] = [number for number, line in lines if word in line]
        numbers = self._lines_with[word]
        first = bisect_left(numbers, node.lineno)
        return first < len(numbers) and numbers[first] <= node.end_lineno

    def drop_tree(self) -> None:
        """Forget the tree, which weighs far more than what was learnt from it."""
        self._tree = None

    def location(self, node: Any) -> Location:
        """Return where `node` stands, in characters, and in its cell where this is a notebook."""
        known = getattr(node, "place", None)
        if known is None:
            known = node.place = self.span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        assert isinstance(known, Location)
        return known

    def call_location(self, node: ast.Call) -> Location:
        """Return where a call stands: from the method's own name on, in a chain of methods."""
        known = getattr(node, "location", None)
        if known is None:
            known = node.location = self._call_location(node)  # type: ignore[attr-defined]
        assert isinstance(known, Location)
        return known

    def _call_location(self, node: ast.Call) -> Location:
        function = node.func
        line, column = node.lineno, node.col_offset
        if isinstance(function, ast.Attribute) and function.end_lineno is not None:
            base = function.value
            if isinstance(base, ast.Call) or function.end_lineno != base.end_lineno:
                line = function.end_lineno
                column = (function.end_col_offset or 0) - len(function.attr.encode())
        return self.span(line, column, node.end_lineno or line, node.end_col_offset or column)

    def span(self, line: int, column: int, end_line: int, end_column: int) -> Location:
        """Return the location of a range given in `ast`'s coordinates (lines from 1, UTF-8 bytes from 0)."""
        return self.source.location(line, column, end_line, end_column)


@functools.lru_cache(maxsize=4096)
def imports_of(text: str) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """Return (dots, module, names) for each import statement that a line of `text` seems to hold.

    A cheap over-approximation for the import graph; the tree has the last word.
    """
    return tuple(_imports(text))


def _imports(text: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for match in _IMPORT.finditer(text):
        dots, module, names, plain = match.groups()
        if plain is not None:
            for part in plain.split(","):
                yield 0, part.split(" as ")[0].strip(), ()
        else:
            listed = _COMMENT.sub("", names).split(",")
            yield len(dots), module, tuple(name.split(" as ")[0].strip(" \t\n()\\") for name in listed)
    if "import_module" in text:
        for dots, module in _BY_NAME.findall(text):
            yield len(dots), module, ()


def packages_of(text: str) -> frozenset[str]:
    """Return the top-level names of what `text` imports absolutely."""
    return frozenset(module.partition(".")[0] for dots, module, _ in imports_of(text) if not dots and module)


class ModuleIndex:
    """Which file of the project an import means. Paths are relative, with forward slashes."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.files = frozenset(paths)
        #: What was asked of `resolve` and `is_package`, (folder, dots, module), with the answers: all that reading
        #: a group of files takes from the files outside it.
        self.resolved: dict[tuple[str, int, str], str | None] = {}
        self.packages: dict[tuple[str, int, str], str | None] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._folders = {""} | {folder for path in self.files for folder in _folders_of(path)}

    def resolve(self, importer: str, dots: int, module: str) -> str | None:
        """Return the path of `module` as `importer` means it, None where it is outside the project."""
        folder = _folder(importer)
        found = self.resolved[folder, dots, module] = self._resolve(folder, dots, module)
        return found

    def _resolve(self, folder: str, dots: int, module: str) -> str | None:
        if dots:
            for _ in range(dots - 1):
                folder = _folder(folder)
            return self._in(folder, module)
        key = (folder, module)
        if key not in self._found:
            candidates = (self._in(base, module) for base in self._roots_of(folder))
            self._found[key] = next((path for path in candidates if path is not None), None)
        return self._found[key]

    def _roots_of(self, folder: str) -> tuple[str, ...]:
        """Return the folders that an absolute import from `folder` may start in, the nearest first."""
        if folder not in self._roots:
            roots: list[str] = []
            for base in (folder, *_folders_of(folder), ""):
                if base not in roots:
                    roots.append(base)
                    layouts = (_join(base, layout) for layout in ("src", "lib", "python"))
                    roots.extend(layout for layout in layouts if layout in self._folders)
            self._roots[folder] = tuple(roots)
        return self._roots[folder]

    def _in(self, folder: str, module: str) -> str | None:
        base = _join(folder, module.replace(".", "/")) if module else folder
        if module and base + ".py" in self.files:
            return base + ".py"
        package = _join(base, "__init__.py")
        return package if package in self.files else None

    def is_package(self, importer: str, dots: int, module: str) -> str | None:
        """Return the folder that a namespace package (one without ``__init__``) would be."""
        folder = _folder(importer)
        found = self.packages[folder, dots, module] = self._is_package(folder, dots, module)
        return found

    def _is_package(self, folder: str, dots: int, module: str) -> str | None:
        for _ in range(max(0, dots - 1)):
            folder = _folder(folder)
        for base in [folder] if dots else self._roots_of(folder):
            candidate = _join(base, module.replace(".", "/")) if module else base
            if candidate in self._folders and candidate:
                return candidate
        return None

    def neighbours(self, path: str, text: str) -> Iterator[str]:
        """Yield the project files that `text` seems to import."""
        folder = _folder(path)
        for dots, module, names in imports_of(text):
            found = self._resolve(folder, dots, module)
            if found is not None:
                yield found
            for name in names:
                deeper = self._resolve(folder, dots, f"{module}.{name}" if module else name)
                if deeper is not None:
                    yield deeper


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _folders_of(path: str) -> Iterator[str]:
    while "/" in path:
        path = _folder(path)
        yield path


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
