"""slices-of-arrays: let tf.data slice the arrays that a generator only walks over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.fixes.expressions import call_at, method_of, names_bound
from tflint_gpu.fixes.places import DeclinedError, Splice
from tflint_gpu.fixes.statements import has_comment

if TYPE_CHECKING:
    from tflint_gpu.fixes.places import Script
    from tflint_gpu.fixes.site import Site

_NOT_PLAIN = "the generator does more than walk over arrays by their names"


def edit(site: Site) -> list[Splice]:
    """Replace ``from_generator(…)`` at the site by ``from_tensor_slices`` of the arrays.

    The generator is ``lambda: zip(x, y)``, or a function of the same file that only loops over arrays, or over
    their indices, and yields their elements. Declines for any other.
    """
    script, call = site.script, call_at(site.script, site.span)
    start, end = method_of(script, call)
    if has_comment(script.text[start:end]):
        raise DeclinedError("a comment stands among the arguments")
    given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "generator")]
    if not given or any(word.arg in (None, "args") for word in call.keywords) or len(call.args) > 3:
        raise DeclinedError("the generator takes arguments")
    arrays = _arrays(script, given[0])
    of = arrays[0] if len(arrays) == 1 else f"({', '.join(arrays)})"
    return [Splice(start, end, f"from_tensor_slices({of})")]


def _arrays(script: Script, generator: ast.expr) -> list[str]:
    match generator:
        case ast.Lambda(args=ast.arguments(args=[], vararg=None, kwarg=None), body=body):
            return _walked(body)
        case ast.Name(id=name):
            return _yielded(script, name)
    raise DeclinedError(_NOT_PLAIN)


def _walked(body: ast.expr) -> list[str]:
    """Return the arrays of ``zip(x, y)`` or ``iter(x)``."""
    match body:
        case ast.Call(func=ast.Name(id="zip"), args=[_, _, *_] as args, keywords=[]):
            return _names(args)
        case ast.Call(func=ast.Name(id="iter"), args=[ast.Name(id=name)], keywords=[]):
            return [name]
    raise DeclinedError(_NOT_PLAIN)


def _yielded(script: Script, name: str) -> list[str]:
    """Return the arrays that the module's function `name` walks over."""
    found = [node for node in script.nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(found) != 1 or found[0] not in script.tree.body:
        raise DeclinedError(_NOT_PLAIN)
    match found[0]:
        case ast.FunctionDef(
            args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], vararg=None, kwarg=None),
            body=[ast.For(target=target, iter=source, body=[ast.Expr(value=ast.Yield(value=given))], orelse=[])],
        ) if given is not None:
            arrays = _by_index(target, source, given) or _by_element(target, source, given)
            if arrays and not set(arrays) & set(names_bound(found[0])):
                return arrays
    raise DeclinedError(_NOT_PLAIN)


def _by_index(target: ast.expr, source: ast.expr, given: ast.expr) -> list[str]:
    """Return the arrays of ``for i in range(len(x)): yield x[i], y[i]``."""
    match target, source:
        case (
            ast.Name(id=index),
            ast.Call(
                func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=counted)])]
            ),
        ):
            parts = given.elts if isinstance(given, ast.Tuple) else [given]
            arrays = [_indexed(part, index) for part in parts]
            return arrays if counted in arrays and all(arrays) else []
    return []


def _indexed(part: ast.expr, index: str) -> str:
    match part:
        case ast.Subscript(value=ast.Name(id=array), slice=ast.Name(id=used)) if used == index:
            return array
    return ""


def _by_element(target: ast.expr, source: ast.expr, given: ast.expr) -> list[str]:
    """Return the arrays of ``for a, b in zip(x, y): yield a, b``, or of ``for a in x: yield a``."""
    if ast.dump(_read(target)) != ast.dump(given):
        return []
    match source:
        case ast.Name(id=name):
            return [name] if isinstance(target, ast.Name) else []
        case ast.Call(func=ast.Name(id="zip")):
            return _walked(source)
    return []


def _read(target: ast.expr) -> ast.expr:
    """Return the expression that reads what `target` binds."""
    if isinstance(target, ast.Tuple):
        return ast.Tuple([_read(part) for part in target.elts], ast.Load())
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _names(parts: list[ast.expr]) -> list[str]:
    if not all(isinstance(part, ast.Name) for part in parts):
        raise DeclinedError(_NOT_PLAIN)
    return [part.id for part in parts if isinstance(part, ast.Name)]
