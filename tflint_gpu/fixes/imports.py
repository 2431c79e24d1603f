"""Where one import more belongs: beside its kin, in the file's own layout, in front of its first use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from tflint_gpu.fixes.places import Script, Splice

#: Packages whose imports stand together.
_KIN = ("tensorflow", "keras", "tf_keras")
_IMPORTS = (ast.Import, ast.ImportFrom)
#: Statements behind which imports are no longer the head of the file.
_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With)


def import_splice(script: Script, line: int, statement: str, *, lazy: bool = False) -> Splice:
    """Return the splice that puts the import `statement` where it holds at `line`.

    That is in front of the first ``from tensorflow import …``, or behind an ``import keras``, or behind the last
    import of the file's head. Where there is none it is on top, in a notebook right in front of the statement.
    With `lazy` it is the head of the function around `line`, as in files that import TensorFlow only there.
    """
    if lazy and (inside := _in_function(script, line, statement)):
        return inside
    body = script.tree.body
    above = list(takewhile(lambda node: _last_line(node) < line, body))
    imports = list(_head(above))
    kin = [node for node in imports if _package(node) in _KIN]
    beside = next((node for node in kin if _package(node) == "tensorflow"), None)
    if isinstance(beside, ast.ImportFrom):
        return _above(script, beside, statement)
    if anchor := beside or next(iter(kin), None) or next(reversed(imports), None):
        return _below(script, anchor, body, statement)
    if script.notebook:
        return _above(script, body[len(above)], statement)
    if above and is_docstring(above[0]):
        return _below(script, above[0], body, statement)
    return _above(script, body[0], statement)


def _head(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, _CODE):
            return
        if isinstance(node, _IMPORTS):
            yield node


def _package(node: ast.Import | ast.ImportFrom) -> str:
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return name.partition(".")[0]


def _in_function(script: Script, line: int, statement: str) -> Splice | None:
    """Return the splice for the innermost function around `line`; None where there is none to write it into."""
    around = [
        node
        for node in script.nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= line <= _last_line(node)
    ]
    if not around:
        return None
    body = max(around, key=lambda node: node.lineno).body
    first = body[1] if len(body) > 1 and is_docstring(body[0]) else body[0]
    number = _first_line(first)
    if script.lines[number - 1][: first.col_offset].strip():
        return None
    return _above(script, first, script.indent(number) + statement)


def _above(script: Script, node: ast.stmt, statement: str) -> Splice:
    line = _first_line(node)
    start = script.offset(line, 0)
    return Splice(start, start, statement + script.newline(line))


def _below(script: Script, node: ast.stmt, body: Sequence[ast.stmt], statement: str) -> Splice:
    last = _last_line(node)
    if any(_first_line(other) == last and other is not node for other in body):
        return _above(script, node, statement)
    end = script.offset(last, len(script.lines[last - 1].rstrip("\r\n")))
    return Splice(end, end, script.newline(last) + statement)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(item.lineno for item in decorators)])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def is_docstring(node: ast.stmt) -> bool:
    """Say whether `node`, the first of its body, is a docstring."""
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
