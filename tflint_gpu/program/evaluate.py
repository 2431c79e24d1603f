"""Expressions → values. Nothing here guesses: what does not fold stays symbolic or unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import loops
from tflint_gpu.program.attributes import attribute, bound_to
from tflint_gpu.program.folding import binary, bounded, compare, fits, is_mask, store_item, subscript
from tflint_gpu.program.joins import join_all, truth
from tflint_gpu.program.names import member
from tflint_gpu.program.state import Site
from tflint_gpu.program.values import (
    Const,
    Element,
    External,
    Function,
    Instance,
    Items,
    Mapping,
    Operation,
    Produced,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.state import State


def unknown(_machine: Machine, _state: State, node: ast.expr) -> Value:
    """Stand in for any expression that says nothing."""
    return Unknown(type(node).__name__)


def _constant(_machine: Machine, _state: State, node: ast.Constant) -> Value:
    return Const(node.value)


def _name(machine: Machine, state: State, node: ast.Name) -> Value:
    value = state.names.get(node.id) or state.lookup(node.id)
    if value is None:
        return _undefined(machine, state, node.id)
    if isinstance(value, Produced) and value.callee in ("tf.Variable", "tf.random.Generator.from_seed"):
        machine.variables_touched += 1
    return value


_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def _undefined(machine: Machine, state: State, name: str) -> Value:
    if name == "__name__":
        return Const("__main__")
    if name == "__file__":
        return Const(state.module.path, soft=True)
    if name in _BUILTINS:
        return External(f"builtins.{name}")
    for star in state.module.stars:
        if (
            not star.startswith(("tf", "keras"))
            or name[:1].isupper()
            or star in ("tf", "tf.math", "keras.backend")
        ):
            return External(member(star, name))
    del machine
    return Unknown(f"undefined {name}")


def _attribute(machine: Machine, state: State, node: ast.Attribute) -> Value:
    return attribute(machine, state, machine.evaluate(node.value, state), node.attr)


def _binary(machine: Machine, state: State, node: ast.BinOp) -> Value:
    return binary(node.op, machine.evaluate(node.left, state), machine.evaluate(node.right, state))


def _unary(machine: Machine, state: State, node: ast.UnaryOp) -> Value:
    value = machine.evaluate(node.operand, state)
    if isinstance(node.op, ast.Not):
        if isinstance(value, Const):
            return Const(not value.value, value.soft)
        known = truth(value)
        return Operation("not", (value,)) if known is None else Const(not known)
    match value:
        case Const(value=int() | float() as number, soft=soft):
            if isinstance(node.op, ast.Invert):
                return Operation("~", (value,))
            return Const(-number if isinstance(node.op, ast.USub) else number, soft)
        case Tensor(symbolic=symbolic):
            sign = "~" if isinstance(node.op, ast.Invert) else "-"
            return Tensor(symbolic=symbolic, parents=(value,), operator=sign)
        case _:
            return Operation("-", (value,))


def _boolean(machine: Machine, state: State, node: ast.BoolOp) -> Value:
    stops_at = isinstance(node.op, ast.Or)
    seen: list[Value] = []
    for operand in node.values:
        value = machine.evaluate(operand, state)
        known = truth(value)
        if known is stops_at:
            return value if not seen else join_all([*seen, value])
        if known is None:
            seen.append(value)
        last = value
    if not seen:
        return last
    return Operation("or" if stops_at else "and", (*seen, last) if last is not seen[-1] else tuple(seen))


def _compare(machine: Machine, state: State, node: ast.Compare) -> Value:
    left = machine.evaluate(node.left, state)
    rights = [machine.evaluate(right, state) for right in node.comparators]
    return compare(node.ops[0], left, rights[0]) if len(rights) == 1 else Operation("compare", (left, *rights))


def _conditional(machine: Machine, state: State, node: ast.IfExp) -> Value:
    test = machine.evaluate(node.test, state)
    known = truth(test)
    if known is not None:
        return machine.evaluate(node.body if known else node.orelse, state)
    outer = state.context
    arms = []
    for arm, positive in ((node.body, True), (node.orelse, False)):
        state.context = outer.inside(machine.guard(node.test, test, state, positive=positive))
        arms.append(machine.evaluate(arm, state))
    state.context = outer
    return join_all(arms)


def _subscript(machine: Machine, state: State, node: ast.Subscript) -> Value:
    base = machine.evaluate(node.value, state)
    key = machine.evaluate(node.slice, state)
    if isinstance(base, Tensor) and is_mask(key):
        # TensorFlow makes a boolean_mask of it: there is no other way to select by a condition.
        noted = machine.record("tf.boolean_mask", Site(state.module.location(node), (base, key), {}), state)
        return Tensor(noted, symbolic=base.symbolic, parents=(base, key))
    if isinstance(base, Instance):
        item = base.cls.find("__getitem__")
        if isinstance(item, Function):
            site = Site(state.module.location(node), (key,), {})
            return machine.call(bound_to(item, base), site, state)
    return subscript(base, key)


def _slicing(machine: Machine, state: State, node: ast.Slice) -> Value:
    parts = (node.lower, node.upper, node.step)
    return Operation("slice", tuple(machine.evaluate(part, state) for part in parts))


def _display(machine: Machine, state: State, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Value] = []
    complete, starred = True, False
    for element in node.elts:
        if isinstance(element, ast.Starred):
            inner = machine.evaluate(element.value, state)
            starred = True
            if isinstance(inner, Items):
                items.extend(inner.items)
                complete = complete and inner.complete
            else:
                items.append(Element(inner))
                complete = False
        elif type(element) is ast.Constant:  # long tables are data, not work
            items.append(Const(element.value))
        else:
            items.append(machine.evaluate(element, state))
    kind = type(node).__name__.lower()
    return bounded(kind, items, complete=complete) if starred else Items(kind, tuple(items), complete)


def _dict(machine: Machine, state: State, node: ast.Dict) -> Value:
    mapping = Mapping()
    for key, value in zip(node.keys, node.values, strict=True):
        if type(key) is ast.Constant and type(value) is ast.Constant:  # long tables are data, not work
            mapping.items[key.value] = Const(value.value)
            continue
        inner = machine.evaluate(value, state)
        if key is None:
            if isinstance(inner, Mapping):
                mapping.items.update(inner.items)
                mapping.other = mapping.other or inner.other
            else:
                mapping.other = Unknown("** of unknown")
            continue
        store_item(mapping, machine.evaluate(key, state), inner)
    return mapping


def _formatted(machine: Machine, state: State, node: ast.JoinedStr) -> Value:
    parts = [
        machine.evaluate(part.value if isinstance(part, ast.FormattedValue) else part, state)
        for part in node.values
    ]
    if all(isinstance(part, Const) for part in parts) and not any(
        isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values
    ):
        text = "".join(str(part.value) for part in parts if isinstance(part, Const))
        if fits(text):
            return Const(text, any(part.soft for part in parts if isinstance(part, Const)))
    return Operation("format", tuple(parts))


def _lambda(_machine: Machine, state: State, node: ast.Lambda) -> Value:
    name = f"{state.qualname}.<lambda>" if state.qualname else "<lambda>"
    return Function("<lambda>", name, state.module, state.module.location(node), node, state.closure())


def _comprehension(machine: Machine, state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    saved = dict(state.names) if not state.is_class else None
    results: list[Value] = []
    complete = loops.rounds(
        machine, state, node.generators, node, lambda: results.append(machine.evaluate(node.elt, state))
    )
    _restore(state, saved, node)
    return Items("list", tuple(results), complete)


def _dict_comprehension(machine: Machine, state: State, node: ast.DictComp) -> Value:
    saved = dict(state.names) if not state.is_class else None
    mapping = Mapping()

    def body() -> None:
        store_item(mapping, machine.evaluate(node.key, state), machine.evaluate(node.value, state))

    loops.rounds(machine, state, node.generators, node, body)
    _restore(state, saved, node)
    return mapping


def _restore(state: State, saved: dict[str, Value] | None, node: ast.expr) -> None:
    """Forget what a comprehension named; what ``:=`` names in it stays."""
    if saved is not None:
        known = getattr(node, "walruses", None)
        if known is None:
            known = [part.target.id for part in nodes_of(node) if isinstance(part, ast.NamedExpr)]
            node.walruses = known  # type: ignore[attr-defined]
        saved.update({name: state.names[name] for name in known if name in state.names})
        state.names.clear()
        state.names.update(saved)


def _named(machine: Machine, state: State, node: ast.NamedExpr) -> Value:
    value = machine.evaluate(node.value, state)
    state.names[node.target.id] = value
    return value


def _await(machine: Machine, state: State, node: ast.Await) -> Value:
    return machine.evaluate(node.value, state)


def _starred(machine: Machine, state: State, node: ast.Starred) -> Value:
    return Element(machine.evaluate(node.value, state))


def _yield(machine: Machine, state: State, node: ast.Yield) -> Value:
    state.yields.append(machine.evaluate(node.value, state))
    return Unknown("sent")


def _yield_from(machine: Machine, state: State, node: ast.YieldFrom) -> Value:
    source = machine.evaluate(node.value, state)
    state.yields.append(loops.element_of(machine, state, source))
    return Unknown("returned")


def is_generator(function: Function) -> bool:
    """Say whether the own body of `function` yields."""
    node = function.node
    known = getattr(node, "is_generator", None)
    if known is None:
        # The text is asked first: walking every function for a rare word costs more than running it.
        known = (
            not isinstance(node, ast.Lambda)
            and function.module.says("yield", node)
            and any(_yields(child) for child in node.body)
        )
        node.is_generator = known
    return bool(known)


def _yields(node: ast.AST) -> bool:
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(top))
    return False


EXPRESSIONS: dict[type, Callable[[Machine, State, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.Slice: _slicing,
    ast.List: _display,
    ast.Tuple: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.JoinedStr: _formatted,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: _named,
    ast.Await: _await,
    ast.Starred: _starred,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
