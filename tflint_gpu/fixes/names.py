"""How a file spells a name of TensorFlow's or Keras': through the names that it has, or one import more."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflint_gpu.fixes.imports import import_splice
from tflint_gpu.fixes.places import DeclinedError, Script, Splice
from tflint_gpu.source.trees import children_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

#: A canonical name in a text of a change: ``{tensorflow.data.AUTOTUNE}``.
_NAME = re.compile(r"\{((?:tensorflow|keras|numpy|os)(?:\.\w+)+)\}")
#: Names with the version that brought them, and what came before.
_BEFORE = {
    "tensorflow.data.AUTOTUNE": ((2, 4), "tensorflow.data.experimental.AUTOTUNE"),
    "keras.mixed_precision.set_global_policy": ((2, 4), "keras.mixed_precision.experimental.set_policy"),
}
#: The names that people give to packages.
_SHORT = {"tensorflow": "tf", "numpy": "np"}
#: Where Keras is found; each file goes on using the one that it imports already.
_KERAS = ("keras", "tensorflow.keras", "tf_keras")

Bindings = Mapping[str, "list[Binding]"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A place that gives a name a meaning: `means` is a dotted path, "" where it is nothing of TensorFlow's.

    `scopes` are the functions and classes around it, outermost first.
    """

    name: str
    means: str
    scopes: tuple[ast.AST, ...]
    line: int


def named(text: str, script: Script, line: int, tensorflow: tuple[int, int]) -> tuple[str, list[Splice]]:
    """Return `text` with every ``{canonical.name}`` in it spelled as works at `line`, and the imports for that.

    Raises `DeclinedError` where a name cannot be had.
    """
    imports: list[Splice] = []

    def spell(match: re.Match[str]) -> str:
        name, needed = reference(match[1], script, line, tensorflow)
        imports.extend(splice for splice in needed if splice not in imports)
        return name

    return _NAME.sub(spell, text), imports


def reference(path: str, script: Script, line: int, tensorflow: tuple[int, int]) -> tuple[str, list[Splice]]:
    """Return an expression for the thing at the canonical `path` that works at `line`, and the import it needs.

    A version that has the thing under an older name gets that. A name of the file counts only where every binding
    of it in the file means the same. Raises `DeclinedError` where no name is free.
    """
    bindings = _bindings_of(script)
    since, older = _BEFORE.get(path, ((0, 0), path))
    target = _kept_keras(older if tensorflow < since else path, script, bindings, tensorflow)
    around = _scopes_at(script, line)
    usable = [
        (name, _meaning(places, bindings)) for name, places in bindings.items() if _visible(places, around, line)
    ]
    for prefix, rest in _prefixes(target):
        same = {prefix, *((path, older) if not rest else ())}
        for name, means in usable:
            if means <= same:
                return name + rest, []
    return _imported(target, script, line, bindings)


def _prefixes(path: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a dotted path as (front, rest with its dot), the longest front first."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        yield ".".join(parts[:count]), "".join(f".{part}" for part in parts[count:])


def _kept_keras(path: str, script: Script, bindings: Bindings, tensorflow: tuple[int, int]) -> str:
    """Return `path` below the Keras that the file imports; raises `DeclinedError` where it uses two of them."""
    if path.partition(".")[0] != "keras":
        return path
    meanings = {_resolve(place.means, bindings) for places in bindings.values() for place in places}
    used = {root for root in _KERAS if any(_is_under(means, root) for means in meanings)}
    if "tensorflow" in meanings and re.search(r"\.keras\b", script.text):
        used.add("tensorflow.keras")
    if used == {"keras", "tensorflow.keras"} and tensorflow >= (2, 16):
        used = {"keras"}
    if len(used) > 1:
        raise DeclinedError(f"the file uses {' and '.join(sorted(used))}, which keep their settings apart")
    return (used.pop() if used else "tensorflow.keras") + path.removeprefix("keras")


def _imported(target: str, script: Script, line: int, bindings: Bindings) -> tuple[str, list[Splice]]:
    taken = []
    for statement, name, means in _statements(target):
        if name in bindings and _meaning(bindings[name], bindings) != {means}:
            taken.append(name)
            continue
        lazy = _imported_in_functions_only(means.partition(".")[0], bindings)
        return name + target.removeprefix(means), [import_splice(script, line, statement, lazy=lazy)]
    names = f"names {' and '.join(taken)} mean" if len(taken) > 1 else f"name {taken[0]} means"
    raise DeclinedError(f"the {names} something else in this file")


def _statements(target: str) -> Iterator[tuple[str, str, str]]:
    """Yield the imports that bring `target`, as people write them: (statement, name, what the name means)."""
    if _is_under(target, "tensorflow.keras"):
        yield "from tensorflow import keras", "keras", "tensorflow.keras"
    package = target.partition(".")[0]
    if package in _SHORT:
        yield f"import {package} as {_SHORT[package]}", _SHORT[package], package
    yield f"import {package}", package, package


def _imported_in_functions_only(package: str, bindings: Bindings) -> bool:
    places = [
        place
        for group in bindings.values()
        for place in group
        if _is_under(_resolve(place.means, bindings), package)
    ]
    return bool(places) and all(place.scopes and isinstance(place.scopes[-1], _FUNCTIONS) for place in places)


def _is_under(path: str, package: str) -> bool:
    return path == package or path.startswith(f"{package}.")


def _meaning(places: Sequence[Binding], bindings: Bindings) -> set[str]:
    return {_resolve(place.means, bindings) for place in places}


#: Nodes that may give a name a meaning, and such as hold no other node.
_BINDERS = (
    *(ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.NamedExpr),
    *(ast.withitem, ast.comprehension, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
)
_BARE = (ast.Name, ast.Constant, ast.alias)


@functools.lru_cache(maxsize=16)
def _bindings_of(script: Script) -> Bindings:
    found: dict[str, list[Binding]] = defaultdict(list)
    for binding in sorted(_bindings(script.tree), key=lambda binding: binding.line):
        found[binding.name].append(binding)
    return dict(found)


def _bindings(tree: ast.AST) -> Iterator[Binding]:
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while stack:
        node, scopes = stack.pop()
        if isinstance(node, _BINDERS):
            yield from _bound_by(node, scopes)
        inner = (*scopes, node) if isinstance(node, _SCOPES) else scopes
        if isinstance(node, ast.If) and _dotted(node.test).endswith(("=TYPE_CHECKING", ".TYPE_CHECKING")):
            # What is imported for annotations alone does not exist when the line runs.
            yield from (
                Binding(found.name, "", found.scopes, found.line)
                for child in node.body
                for found in _bindings(child)
            )
            stack += [(child, inner) for child in node.orelse]
            continue
        stack += [(child, inner) for child in children_of(node) if not isinstance(child, _BARE)]


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
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield Binding(node.rest, "", scopes, line)


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


def _resolve(means: str, bindings: Bindings, depth: int = 4) -> str:
    if means.startswith("=") and depth:
        head, _, rest = means[1:].partition(".")
        found = {_resolve(place.means, bindings, depth - 1) for place in bindings.get(head, ())}
        means = f"{found.pop()}.{rest}".rstrip(".") if len(found) == 1 else ""
    for compat in ("tensorflow.compat.v1", "tensorflow.compat.v2"):
        if means == compat or means.startswith(f"{compat}."):
            means = "tensorflow" + means[len(compat) :]
    return means


def _scopes_at(script: Script, line: int) -> set[ast.AST]:
    return {node for node in _functions_of(script) if node.lineno <= line <= (node.end_lineno or node.lineno)}


@functools.lru_cache(maxsize=16)
def _functions_of(script: Script) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    return [node for node in script.nodes if isinstance(node, _FUNCTIONS)]


def _visible(places: Sequence[Binding], around: set[ast.AST], line: int) -> bool:
    return any(
        (place.line < line or bool(around)) if not place.scopes else _reaches(place, around, line)
        for place in places
    )


def _reaches(place: Binding, around: set[ast.AST], line: int) -> bool:
    return place.line < line and place.scopes[-1] in around
