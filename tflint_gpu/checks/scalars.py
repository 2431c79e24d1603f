"""Whether a Python number handed to a graph function may become a tensor without changing what is computed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.program.values import Const, Function, Operation, Produced

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import GraphFunction, Value
    from tflint_gpu.program.views import Program

#: In these programs ``tf.constant(0.1)``, a float32, may meet a tensor of another type.
_OTHER_FLOATS = ("float16", "float64", "double", "half", "set_floatx")

#: Functions of TensorFlow's that take a number and a tensor alike.
_NUMERIC = ("add", "subtract", "multiply", "divide", "pow", "maximum", "minimum")


def why_no_tensor(function: GraphFunction, call: Call, key: int | str, program: Program) -> str:
    """Return why the argument `key` of `call` must stay a Python number; "" where a tensor does the same.

    It does where the function only casts it, or uses it as a float in arithmetic with tensors.
    """
    body = function.function
    name = _parameter(body, key) if isinstance(body, Function) else ""
    if not isinstance(body, Function) or not name:
        return "the function that takes the number is not known"
    value = call.kwargs[key] if isinstance(key, str) else call.args[key]
    others = any(word in module.source.text for module in program.modules for word in _OTHER_FLOATS)
    parents = {child: node for node in ast.walk(body.node) for child in ast.iter_child_nodes(node)}
    uses = [part for part in ast.walk(body.node) if isinstance(part, ast.Name) and part.id == name]
    if any(not isinstance(use.ctx, ast.Load) for use in uses):
        return f"the function gives {name} another value"
    for use in uses:
        if _is_cast(use, parents):
            continue
        if not _is_float(value) or others:
            return f"{name} is used beside tensors of a type that is not known; cast it there"
        if not _in_arithmetic(use, parents):
            return f"the function uses {name} as a Python number ({ast.unparse(parents[use])})"
    return "" if uses else f"the function does not use {name}"


def _parameter(function: Function, key: int | str) -> str:
    """Return the name of the parameter that receives argument `key`, "" where that is not plain."""
    if isinstance(key, str):
        return key
    given = getattr(function.node, "args", None)
    if not isinstance(given, ast.arguments):
        return ""
    names = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    index = key + (function.bound is not None or names[:1] == ["self"])
    return names[index] if index < len(names) else ""


def _is_cast(use: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    match parents[use]:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="cast"), args=[first, *_]):
            return first is use
    return False


def _is_float(value: Value) -> bool:
    """Say whether `value` is surely a float: a quotient, or arithmetic with a literal float."""
    match value:
        case Const(value=float()) | Operation(operator="/" | "float"):
            return True
        case Operation(operator="+" | "-" | "*" | "**", operands=parts):
            return any(map(_is_float, parts))
        case Produced(call=call):
            return call.callee.startswith(("math.", "time.", "random.random", "random.uniform", "random.gauss"))
    return False


def _in_arithmetic(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Say whether the number is an operand beside something that is no literal, and only the result goes on."""
    node, beside = use, False
    while isinstance(parents[node], ast.BinOp | ast.UnaryOp):
        parent = parents[node]
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is node else parent.left
            beside = beside or not isinstance(other, ast.Constant)
        node = parent
    match parents[node]:
        case ast.Assign(targets=[ast.Name()]) | ast.AugAssign(target=ast.Name()) | ast.Return():
            return beside
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute(), attr=name)) if name in _NUMERIC:
            return True
    return False
