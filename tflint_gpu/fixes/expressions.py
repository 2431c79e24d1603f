"""Expressions of a script where they stand: a call by its end, any other by its whole range."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tflint_gpu.fixes.places import DeclinedError, Script, Span
from tflint_gpu.fixes.statements import end_of, start_of

_OPENING = re.compile(r"[\s)\\]*\(")
_OPENS, _CLOSES = ("(", "[", "{"), (")", "]", "}")
_LAYOUT = ("NL", "COMMENT", "NEWLINE", "ENDMARKER", "INDENT", "DEDENT")


def expression_at(script: Script, span: Span) -> ast.expr:
    """Return the expression that fills `span`, of a keyword argument its value; raises `DeclinedError`."""
    for node in script.nodes:
        if isinstance(node, ast.keyword) and _span(script, node) == span:
            return node.value
        if isinstance(node, ast.expr) and _span(script, node) == span:
            return node
    raise DeclinedError("the expression is not there any more")


def call_at(script: Script, span: Span) -> ast.Call:
    """Return the call that ends where `span` does and holds its start; raises `DeclinedError` where none does."""
    for node in script.nodes:
        if isinstance(node, ast.Call):
            start, end = _span(script, node)
            if end == span[1] and start <= span[0]:
                return node
    raise DeclinedError("no call stands there any more")


def method_of(script: Script, call: ast.Call) -> tuple[int, int]:
    """Return the offsets of ``name(arguments)`` of a method call; raises `DeclinedError` for any other call."""
    if not isinstance(call.func, ast.Attribute):
        raise DeclinedError("the call is no method of a chain")
    name_end = script.offset(*end_of(script, call.func))
    return name_end - len(call.func.attr), script.offset(*end_of(script, call))


def argument_ranges(script: Script, call: ast.Call) -> list[tuple[int, int]]:
    """Return the offsets of each argument of `call` in order, with the parentheses around it, not its comma."""
    start, end = script.offset(*end_of(script, call.func)), script.offset(*end_of(script, call))
    opening = _OPENING.match(script.text, start)
    if opening is None:
        raise DeclinedError("the call's parentheses cannot be found")
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts = [(script.offset(*start_of(script, part)), script.offset(*end_of(script, part))) for part in given]
    base = opening.end() - 1
    lines = Script(script.text[base:end], ast.Module([], []))
    found: list[tuple[int, int]] = []
    depth, fresh = 0, True
    for token in tokenize.generate_tokens(io.StringIO(lines.text, newline="").readline):
        kind = tokenize.tok_name[token.type]
        if kind in _LAYOUT:
            continue
        first, last = (base + lines.offset(*place) for place in (token.start, token.end))
        depth -= kind == "OP" and token.string in _CLOSES
        # A comma in a lambda's head is no comma of the call.
        if depth == 1 and token.string == "," and not any(begun < first < behind for begun, behind in parts):
            fresh = True
        elif depth:
            found.append((first if fresh else found.pop()[0], last))
            fresh = False
        depth += kind == "OP" and token.string in _OPENS
    return found


def given_name(script: Script, span: Span, line: int) -> str:
    """Return the name that the program gives to the result of the call at `span`, where it holds at `line`.

    Raises `DeclinedError` where it has none, another one too, or is out of reach there.
    """
    call = call_at(script, span)
    for node in script.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
                if list(names_bound(script.tree)).count(name) > 1:
                    raise DeclinedError(f"{name} is set in several places")
                if node.lineno >= line or not _reaches(script, node, line):
                    raise DeclinedError(f"{name} is out of reach here")
                return name
    raise DeclinedError("what is made there has no name of its own")


def _reaches(script: Script, node: ast.Assign, line: int) -> bool:
    """Say whether a name set by `node` is seen at `line`: by the module, or in the same function."""
    around = [
        part
        for part in script.nodes
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        and part.lineno <= node.lineno <= (part.end_lineno or part.lineno)
    ]
    return all(
        not isinstance(part, ast.ClassDef) and part.lineno <= line <= (part.end_lineno or part.lineno)
        for part in around
    )


def is_literal(node: ast.expr) -> bool:
    """Say whether `node` says its value itself: a literal, or a dotted name such as ``tf.float64``."""
    if isinstance(node, ast.UnaryOp):
        return is_literal(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(is_literal, node.elts))
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Attribute) and bool(dotted(node)))


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for such an expression, "" for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def names_read(node: ast.AST) -> set[str]:
    """Return every name that is read somewhere in `node`."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def unused_name(tree: ast.AST, *names: str) -> str:
    """Return the first of `names` that `tree` neither reads nor binds; raises `DeclinedError` where it has all."""
    taken = names_read(tree) | set(names_bound(tree))
    for name in names:
        if name not in taken:
            return name
    raise DeclinedError(f"the names {', '.join(names)} are taken")


def free_names(node: ast.AST) -> set[str]:
    """Return the names that `node` reads from around it: of a function, those that are not its own."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return names_read(node)
    given = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    own = given | {name for part in node.body for name in names_bound(part)}
    inside = {name for part in node.body for name in names_read(part)}
    outside = {
        name
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults))
        for name in names_read(part)
    }
    return (inside - own) | outside


def names_bound(node: ast.AST) -> Iterator[str]:
    """Yield every name that something in `node` binds, in whatever way."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names


def _span(script: Script, node: ast.expr | ast.keyword) -> Span:
    return start_of(script, node), end_of(script, node)
