"""How a file spells ``tf.data.AUTOTUNE``: through the names it already has, or through one import more."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflint_gpu.fixes.places import DeclinedError, Script, Splice

_AUTOTUNE = frozenset({"tensorflow.data.AUTOTUNE", "tensorflow.data.experimental.AUTOTUNE"})

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Binding:
    """A place that gives a name a meaning: `means` is a dotted path, "" where it is nothing of TensorFlow's.

    `scopes` are the functions and classes around it, outermost first.
    """

    name: str
    means: str
    scopes: tuple[ast.AST, ...]
    line: int


def autotune(script: Script, line: int, tensorflow: tuple[int, int]) -> tuple[str, list[Splice]]:
    """Return an expression for AUTOTUNE that works at `line`, and the import that it needs, if any.

    TensorFlow before 2.4 has only ``tf.data.experimental.AUTOTUNE``. A name counts only where every binding of it
    in the file means the same thing. Raises `DeclinedError` where no name is free.
    """
    bindings: dict[str, list[Binding]] = defaultdict(list)
    for binding in _bindings(script.tree):
        bindings[binding.name].append(binding)
    around = _scopes_at(script.tree, line)
    path = "data.experimental.AUTOTUNE" if tensorflow < (2, 4) else "data.AUTOTUNE"
    for meaning, suffix in (
        (_AUTOTUNE, ""),
        ({"tensorflow"}, f".{path}"),
        ({"tensorflow.data"}, path.removeprefix("data")),
        ({"tensorflow.data.experimental"}, ".AUTOTUNE"),
    ):
        for name, places in bindings.items():
            means = {_resolve(place.means, bindings) for place in places}
            if means <= meaning and _visible(places, around, line):
                return name + suffix, []
    return _imported(script, line, bindings, path)


def _imported(
    script: Script, line: int, bindings: dict[str, list[Binding]], path: str
) -> tuple[str, list[Splice]]:
    if script.notebook:
        raise DeclinedError("no name for TensorFlow is in scope in this cell; import it in a cell above")
    name = next((free for free in ("tf", "tensorflow") if free not in bindings), None)
    if name is None:
        raise DeclinedError("the names tf and tensorflow both mean something else in this file")
    before = _import_line(script.tree.body)
    if before > line:
        raise DeclinedError("the call shares its line with the imports; part them")
    statement = "import tensorflow as tf" if name == "tf" else "import tensorflow"
    newline = script.newline(max(1, before - 1))
    at_end = before > len(script.lines)
    start = len(script.text) if at_end else script.offset(before, 0)
    return f"{name}.{path}", [Splice(start, start, statement + newline)]


def _import_line(body: Sequence[ast.stmt]) -> int:
    """Return the line in front of which an import belongs: before the first from-import of TensorFlow in the head
    of the file, else behind its last import."""
    line = 1
    for index, node in enumerate(body):
        docstring = (
            index == 0
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if not docstring and not isinstance(node, (ast.Import, ast.ImportFrom)):
            decorators = (item.lineno for item in getattr(node, "decorator_list", ()))
            return line if index else min([node.lineno, *decorators])
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tensorflow":
            return node.lineno
        line = (node.end_lineno or node.lineno) + 1
    return line


def _bindings(tree: ast.AST) -> Iterator[Binding]:
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while stack:
        node, scopes = stack.pop()
        yield from _bound_by(node, scopes)
        inner = (*scopes, node) if isinstance(node, _SCOPES) else scopes
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            # What is imported for annotations alone does not exist when the line runs.
            yield from (
                Binding(found.name, "", found.scopes, found.line)
                for child in node.body
                for found in _bindings(child)
            )
            stack += [(child, inner) for child in node.orelse]
            continue
        stack += [(child, inner) for child in ast.iter_child_nodes(node)]


def _bound_by(node: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[Binding]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            yield Binding(name, alias.name if alias.asname else name, scopes, line)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            means = "" if node.level else f"{node.module}.{alias.name}"
            yield Binding(alias.asname or alias.name, means, scopes, line)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield Binding(node.targets[0].id, _dotted(node.value), scopes, line)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        yield from _targets(node, scopes)
    elif isinstance(node, ast.NamedExpr):
        yield Binding(node.target.id, "", scopes, line)
    elif isinstance(node, (ast.withitem, ast.comprehension)):
        yield from _targets(node, scopes)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield Binding(node.name, "", scopes, line)
    elif isinstance(node, ast.arg):
        yield Binding(node.arg, "", scopes, line)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield Binding(node.name, "", scopes, line)


def _targets(node: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[Binding]:
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = list(node.targets)
    elif isinstance(node, ast.withitem):
        targets = [node.optional_vars] if node.optional_vars else []
    else:
        targets = [node.target]  # type: ignore[attr-defined]
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield Binding(part.id, "", scopes, part.lineno)


def _dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for such an expression, "" for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    # Marked, because its first name still has to be looked up; an import's path is final.
    return "=" + ".".join([node.id, *reversed(parts)])


def _resolve(means: str, bindings: dict[str, list[Binding]], depth: int = 4) -> str:
    if means.startswith("=") and depth:
        head, _, rest = means[1:].partition(".")
        found = {_resolve(place.means, bindings, depth - 1) for place in bindings.get(head, ())}
        means = f"{found.pop()}.{rest}".rstrip(".") if len(found) == 1 else ""
    for compat in ("tensorflow.compat.v1", "tensorflow.compat.v2"):
        if means == compat or means.startswith(f"{compat}."):
            means = "tensorflow" + means[len(compat) :]
    return means


def _scopes_at(tree: ast.AST, line: int) -> set[ast.AST]:
    return {
        node
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    }


def _visible(places: Sequence[Binding], around: set[ast.AST], line: int) -> bool:
    return any(
        (place.line < line or bool(around)) if not place.scopes else _reaches(place, around, line)
        for place in places
    )


def _reaches(place: Binding, around: set[ast.AST], line: int) -> bool:
    return place.line < line and place.scopes[-1] in around
