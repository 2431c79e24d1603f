"""Expressions → values. Nothing here guesses: what does not fold stays symbolic or unknown."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tflint_gpu.program.names import member
from tflint_gpu.program.values import (
    MAX_CHOICES,
    Attribute,
    Choice,
    Class,
    Const,
    Dataset,
    Element,
    External,
    Function,
    Generator,
    GraphFunction,
    Imported,
    Instance,
    Items,
    Mapping,
    Operation,
    Partial,
    Produced,
    Stage,
    Subscript,
    Super,
    Tensor,
    Unknown,
    Value,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine, State

#: Attributes of a tensor that are no tensors.
_TENSOR_FACTS = frozenset("shape dtype name device graph op ndim row_splits nrows bounding_shape".split())

_OPERATORS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.BitOr: ("|", operator.or_),
    ast.BitAnd: ("&", operator.and_),
    ast.BitXor: ("^", operator.xor),
    ast.MatMult: ("@", operator.matmul),
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b or a == b,
    ast.IsNot: lambda a, b: not (a is b or a == b),
}


# --- joining and truth


def join(first: Value, second: Value) -> Value:
    """Return what a variable holds after two branches of which one ran."""
    if first is second:
        return first
    match first, second:
        case Const(value=a, soft=s), Const(value=b, soft=t) if type(a) is type(b) and a == b:
            return Const(a, s or t)
        case Dataset(), Dataset():
            joined = _join_datasets(first, second)
            if joined is not None:
                return joined
        case Tensor(symbolic=a), Tensor(symbolic=b) if a == b and not a:
            return first
        case Unknown(), Unknown():
            return first
    options: list[Value] = []
    for value in (first, second):
        for option in value.options if isinstance(value, Choice) else (value,):
            if not any(_same(option, known) for known in options):
                options.append(option)
    if len(options) == 1:
        return options[0]
    return Choice(tuple(options)) if len(options) <= MAX_CHOICES else Unknown("too many branches")


def _same(first: Value, second: Value) -> bool:
    if first is second or (isinstance(first, Unknown) and isinstance(second, Unknown)):
        return True
    if isinstance(first, Const) and isinstance(second, Const):
        return type(first.value) is type(second.value) and bool(first.value == second.value)
    if isinstance(first, External) and isinstance(second, External):
        return first.name == second.name
    if isinstance(first, Dataset) and isinstance(second, Dataset):
        return [s.call for s in first.stages] == [s.call for s in second.stages]
    return False


def join_all(values: Iterable[Value]) -> Value:
    """Join any number of values."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result if result is not None else Unknown("nothing")


def _join_datasets(first: Dataset, second: Dataset) -> Dataset | None:
    """Join a chain with the same chain carried further: the surplus may be skipped. None for other pairs."""
    short, long = (first, second) if len(first.stages) <= len(second.stages) else (second, first)
    rest = list(long.stages)
    kept: list[Stage] = []
    for stage in short.stages:
        while rest and rest[0].call is not stage.call:
            kept.append(replace(rest.pop(0), conditional=True))
        if not rest:
            return None
        kept.append(rest.pop(0) if not stage.conditional else stage)
        if not kept[-1].conditional and stage.conditional:
            kept[-1] = stage
    kept.extend(replace(stage, conditional=True) for stage in rest)
    options = {**short.options, **long.options}
    return Dataset(tuple(kept), options, first.distributed or second.distributed)


def alternatives(value: Value) -> tuple[Value, ...]:
    """Return the options of a choice, or the value alone."""
    return value.options if isinstance(value, Choice) else (value,)


def truth(value: Value) -> bool | None:
    """Return whether `value` is true, None where that depends on the run."""
    match value:
        case Const(value=plain, soft=soft):
            return None if soft else bool(plain)
        case Items(items=items, complete=complete):
            return bool(items) if complete else (True if items else None)
        case Dataset() | Model() | Instance() | Function() | Class() | GraphFunction() | Partial() | Generator():
            return True
        case _:
            return None


def soften(value: Value) -> Value:
    """Return `value` as a default that a caller may override."""
    match value:
        case Const(value=plain):
            return Const(plain, soft=True)
        case _:
            return value


# --- expressions


def unknown(_machine: Machine, _state: State, node: ast.expr) -> Value:
    """Stand in for any expression that says nothing."""
    return Unknown(type(node).__name__)


def _constant(_machine: Machine, _state: State, node: ast.Constant) -> Value:
    return Const(node.value)


def _name(machine: Machine, state: State, node: ast.Name) -> Value:
    value = state.lookup(node.id)
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


def attribute(machine: Machine, state: State, base: Value, name: str) -> Value:
    """Return ``base.name``; properties of project classes are followed."""
    match base:
        case External(name=dotted):
            return _external_attribute(machine, dotted, name)
        case Imported(module=module):
            return machine_member(machine, module, name)
        case Instance():
            return _instance_attribute(machine, state, base, base, name)
        case Model(instance=Instance() as instance):
            return _instance_attribute(machine, state, base, instance, name)
        case Class():
            return _class_attribute(base, name)
        case Super(cls=cls, instance=instance):
            found = _inherited(cls, name)
            return bind(found, instance) if found is not None else Attribute(base, name)
        case Mapping(items=items) if name in items:
            return items[name]
        case Tensor(symbolic=symbolic):
            if name in _TENSOR_FACTS:
                return Attribute(base, name)
            return Tensor(symbolic=symbolic, parents=(base,))
        case Choice(options=options):
            return join_all(attribute(machine, state, option, name) for option in options)
        case Const(value=text) if name in ("name", "parent", "stem") and isinstance(text, str):
            return Const(text, soft=True)
        case GraphFunction(function=inner) if name in ("python_function", "__wrapped__"):
            return inner
        case _:
            known = machine.attributes.get(id(base))
            if known is not None and name in known[1]:
                return known[1][name]
            return Attribute(base, name)


def _external_attribute(machine: Machine, dotted: str, name: str) -> Value:
    if dotted in ("absl.flags.FLAGS", "tf.compat.v1.flags.FLAGS", "tf.flags.FLAGS", "tf.app.flags.FLAGS"):
        return machine.flags.get(name, Unknown("flag"))
    return External(member(dotted, name))


def _instance_attribute(machine: Machine, state: State, owner: Value, instance: Instance, name: str) -> Value:
    if name in instance.attributes:
        value = instance.attributes[name]
        if isinstance(value, Produced) and value.callee == "tf.Variable":
            machine.variables_touched += 1
        return value
    found = instance.cls.find(name)
    if isinstance(found, Function) and found.kind == "property":
        bound = bind(found, owner)
        assert isinstance(bound, Function)
        return machine.follow(bound, (), {}, state.context)
    if found is not None:
        return bind(found, owner)
    return Attribute(owner, name)


def _class_attribute(cls: Class, name: str) -> Value:
    found = cls.find(name)
    if found is None:
        return External(cls.name) if name == "__class__" else Attribute(cls, name)
    if isinstance(found, Function) and found.kind == "class":
        return replace_function(found, cls)
    return found


def _inherited(cls: Class, name: str) -> Value | None:
    for base in cls.bases:
        if isinstance(base, Class) and (found := base.find(name)) is not None:
            return found
    return None


def replace_function(function: Function, bound: Value | None) -> Function:
    """Return `function` bound to `bound`."""
    return Function(
        function.name,
        function.qualname,
        function.module,
        function.location,
        function.node,
        function.closure,
        bound,
        function.owner,
        function.kind,
    )


def bind(found: Value, owner: Value) -> Value:
    """Return a class member as seen through an object: functions become bound methods."""
    match found:
        case Function(kind="static"):
            return found
        case Function(kind="class", owner=cls) if cls is not None:
            return replace_function(found, cls)
        case Function():
            return replace_function(found, owner)
        case GraphFunction(function=Function() as inner):
            return GraphFunction(replace_function(inner, owner), found.made, found.options, found.calls)
        case _:
            return found


def machine_member(machine: Machine, module: Any, name: str) -> Value:
    """Return what ``module.name`` is for a module of the project, running the module first."""
    from tflint_gpu.program import execute

    execute.run_module(machine, module)
    if name in module.names:
        return module.names[name]
    submodule = execute.submodule(machine, module, name)
    if submodule is not None:
        return Imported(submodule)
    for star in module.stars:
        return External(member(star, name))
    return Unknown(f"{module.name}.{name}")


def _binary(machine: Machine, state: State, node: ast.BinOp) -> Value:
    return binary(node.op, machine.evaluate(node.left, state), machine.evaluate(node.right, state))


def binary(op: ast.operator, left: Value, right: Value) -> Value:
    """Return ``left op right``, folded where both are literal."""
    symbol, function = _OPERATORS[type(op)]
    match left, right:
        case Const(value=a, soft=s), Const(value=b, soft=t):
            folded = _fold(symbol, function, a, b)
            return Const(folded[0], s or t) if folded else Unknown("does not fold")
        case (Tensor(), _) | (_, Tensor()):
            symbolic = any(isinstance(side, Tensor) and side.symbolic for side in (left, right))
            return Tensor(symbolic=symbolic, parents=(left, right))
        case Items(kind=kind, items=a, complete=c), Items(items=b, complete=d) if symbol == "+":
            return Items(kind, a + b, c and d)
        case Items(kind=kind, items=a), _ if symbol == "*":
            return Items(kind, a, complete=False)
        case Const(value=str()), _ if symbol == "%":
            return Operation("format", (left, right))
    if isinstance(left, Choice) and isinstance(right, Const):
        return join_all(binary(op, option, right) for option in left.options)
    return Operation(symbol, (left, right))


def _fold(symbol: str, function: Callable[[Any, Any], Any], a: Any, b: Any) -> tuple[Any] | None:
    if symbol in ("**", "<<") and not (isinstance(b, int | float) and abs(b) <= 128):
        return None
    if symbol == "*" and any(isinstance(side, str | bytes) for side in (a, b)):
        return None
    if symbol == "/" and isinstance(a, str) and isinstance(b, str):  # pathlib
        return (f"{a.rstrip('/')}/{b}",)
    try:
        result = function(a, b)
    except Exception:
        return None
    return (result,) if not isinstance(result, int) or result.bit_length() < 256 else None


def _unary(machine: Machine, state: State, node: ast.UnaryOp) -> Value:
    value = machine.evaluate(node.operand, state)
    if isinstance(node.op, ast.Not):
        if isinstance(value, Const):
            return Const(not value.value, value.soft)
        known = truth(value)
        return Operation("not", (value,)) if known is None else Const(not known)
    match value:
        case Const(value=int() | float() as number, soft=soft):
            sign = {ast.USub: operator.neg, ast.UAdd: operator.pos}.get(type(node.op))
            return Const(sign(number), soft) if sign else Operation("~", (value,))
        case Tensor(symbolic=symbolic):
            return Tensor(symbolic=symbolic, parents=(value,))
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
    if len(rights) > 1:
        return Operation("compare", (left, *rights))
    right, op = rights[0], node.ops[0]
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if isinstance(op, ast.Is | ast.IsNot):
            return Const(isinstance(op, ast.IsNot))
        return Tensor(parents=(left, right))
    plain = _plain(right)
    if isinstance(left, Const) and plain is not _OPAQUE:
        try:
            outcome = _COMPARISONS[type(op)](left.value, plain)
        except Exception:
            return Unknown("does not compare")
        return Const(bool(outcome), left.soft or (isinstance(right, Const) and right.soft))
    if (
        isinstance(right, Const)
        and right.value is None
        and isinstance(op, ast.Is | ast.IsNot)
        and _is_object(left)
    ):
        return Const(isinstance(op, ast.IsNot))
    return Operation("compare", (left, right))


_OPAQUE = object()


def _plain(value: Value) -> Any:
    """Return the Python object behind a literal, or `_OPAQUE`."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Items) and value.complete and all(isinstance(item, Const) for item in value.items):
        return tuple(item.value for item in value.items if isinstance(item, Const))
    return _OPAQUE


def _is_object(value: Value) -> bool:
    return isinstance(
        value,
        Dataset | Model | Instance | Function | Class | GraphFunction | Items | Mapping | Produced | Generator,
    )


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
    return subscript(base, machine.evaluate(node.slice, state))


def subscript(base: Value, key: Value) -> Value:
    """Return ``base[key]``."""
    match base, key:
        case Items(items=items, complete=True), Const(value=int() as index) if -len(items) <= index < len(items):
            return items[index]
        case Items(kind=kind, items=items, complete=complete), Operation(operator="slice", operands=parts):
            return _slice(kind, items, parts) if complete else base
        case Items(items=items), _ if items:
            return join_all(items)
        case Mapping(items=items), Const(value=name) if _hashable(name) and name in items:
            return items[name]
        case Mapping(items=items, other=other), Const():
            return other or Subscript(base, key)
        case Mapping(items=items, other=other), _:
            values = [*items.values(), *([other] if other else [])]
            return join_all(values) if values else Unknown("empty")
        case Choice(options=options), _:
            return join_all(subscript(option, key) for option in options)
        case Tensor(symbolic=symbolic), _:
            return Tensor(symbolic=symbolic, parents=(base, key))
        case Const(value=text), Const(value=int() as index):
            try:
                return Const(text[index], base.soft)
            except Exception:
                return Unknown("no such item")
        case Class(), _:
            return base
        case External(name="os.environ"), Const(value=str()):
            return Unknown("environment")
        case _:
            return Subscript(base, key)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _slice(kind: str, items: tuple[Value, ...], parts: tuple[Value, ...]) -> Value:
    bounds = [part.value if isinstance(part, Const) else _OPAQUE for part in parts]
    if _OPAQUE in bounds:
        return Items(kind, items, complete=False)
    try:
        return Items(kind, items[slice(*bounds)])
    except (TypeError, ValueError):
        return Items(kind, items, complete=False)


def _slicing(machine: Machine, state: State, node: ast.Slice) -> Value:
    parts = (node.lower, node.upper, node.step)
    return Operation("slice", tuple(machine.evaluate(part, state) for part in parts))


def _display(machine: Machine, state: State, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Value] = []
    complete = True
    for element in node.elts:
        if isinstance(element, ast.Starred):
            inner = machine.evaluate(element.value, state)
            if isinstance(inner, Items):
                items.extend(inner.items)
                complete = complete and inner.complete
            else:
                items.append(Element(inner))
                complete = False
        else:
            items.append(machine.evaluate(element, state))
    return Items(type(node).__name__.lower(), tuple(items), complete)


def _dict(machine: Machine, state: State, node: ast.Dict) -> Value:
    mapping = Mapping()
    for key, value in zip(node.keys, node.values, strict=True):
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


def store_item(mapping: Mapping, key: Value, value: Value) -> None:
    """Set ``mapping[key] = value``."""
    if isinstance(key, Const) and _hashable(key.value):
        mapping.items[key.value] = value
    else:
        mapping.other = value if mapping.other is None else join(mapping.other, value)


def _formatted(machine: Machine, state: State, node: ast.JoinedStr) -> Value:
    parts = [
        machine.evaluate(part.value if isinstance(part, ast.FormattedValue) else part, state)
        for part in node.values
    ]
    if all(isinstance(part, Const) for part in parts) and not any(
        isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values
    ):
        return Const(
            "".join(str(part.value) for part in parts if isinstance(part, Const)),
            any(part.soft for part in parts if isinstance(part, Const)),
        )
    return Operation("format", tuple(parts))


def _lambda(_machine: Machine, state: State, node: ast.Lambda) -> Value:
    name = f"{state.qualname}.<lambda>" if state.qualname else "<lambda>"
    return Function("<lambda>", name, state.module, state.module.location(node), node, closure_of(state))


def closure_of(state: State) -> State | None:
    """Return the state that a function defined here closes over: never a class body."""
    here: State | None = state
    while here is not None and here.is_class:
        here = here.parent
    return here


def _comprehension(machine: Machine, state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    from tflint_gpu.program import loops

    saved = dict(state.names) if not state.is_class else None
    results: list[Value] = []
    complete = loops.rounds(
        machine, state, node.generators, node, lambda: results.append(machine.evaluate(node.elt, state))
    )
    _restore(state, saved)
    return Items("list", tuple(results), complete)


def _dict_comprehension(machine: Machine, state: State, node: ast.DictComp) -> Value:
    from tflint_gpu.program import loops

    saved = dict(state.names) if not state.is_class else None
    mapping = Mapping()

    def body() -> None:
        store_item(mapping, machine.evaluate(node.key, state), machine.evaluate(node.value, state))

    loops.rounds(machine, state, node.generators, node, body)
    _restore(state, saved)
    return mapping


def _restore(state: State, saved: dict[str, Value] | None) -> None:
    if saved is not None:
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
    from tflint_gpu.program import loops

    source = machine.evaluate(node.value, state)
    state.yields.append(loops.element_of(machine, state, source))
    return Unknown("returned")


def is_generator(node: Any) -> bool:
    """Say whether a function's own body yields."""
    known = getattr(node, "is_generator", None)
    if known is None:
        known = not isinstance(node, ast.Lambda) and any(_yields(child) for child in node.body)
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


def _call(machine: Machine, state: State, node: ast.Call) -> Value:
    from tflint_gpu.program import invoke

    function = node.func
    if isinstance(function, ast.Attribute):
        base = machine.evaluate(function.value, state)
        return invoke.call_method(machine, state, base, function.attr, invoke.site_of(machine, state, node))
    value = machine.evaluate(function, state)
    return invoke.call(machine, state, value, invoke.site_of(machine, state, node))


EXPRESSIONS: dict[type, Callable[[Machine, State, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
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
