"""Statements: how variables change and where control can go."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import attributes, evaluate, folding, joins, loops
from tflint_gpu.program.context import Guard, Scope
from tflint_gpu.program.names import canonical, member
from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Class,
    Const,
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
    Tensor,
    Unknown,
    Value,
    options_of,
    walk,
)
from tflint_gpu.program.views import Model, Setting

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine, State
    from tflint_gpu.program.modules import Module

_DEBUG = re.compile(r"debug|verbos|profil|trace|eager|dry_?run|sanity", re.IGNORECASE)


def ignore(_machine: Machine, _state: State, _node: ast.stmt) -> None:
    """Pass over a statement that changes nothing the views care for."""


# --- assignment


def _assign(machine: Machine, state: State, node: ast.Assign) -> None:
    value = machine.evaluate(node.value, state)
    for target in node.targets:
        assign(machine, state, target, value)


def _annotated(machine: Machine, state: State, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(machine, state, node.target, machine.evaluate(node.value, state))


def _augmented(machine: Machine, state: State, node: ast.AugAssign) -> None:
    old = machine.evaluate(node.target, state)
    value = folding.binary(node.op, old, machine.evaluate(node.value, state))
    if isinstance(node.target, ast.Attribute | ast.Subscript) and isinstance(value, Const):
        value = Unknown("counter")  # a counter on an object: this is only one of its values
    assign(machine, state, node.target, value)


def assign(machine: Machine, state: State, target: ast.expr, value: Value) -> None:
    """Bind `target` to `value`."""
    match target:
        case ast.Name(id=name):
            _set_name(state, name, value)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element, part in zip(elements, spread(value, elements), strict=True):
                assign(machine, state, element, part)
        case ast.Starred(value=inner):
            assign(machine, state, inner, value)
        case ast.Attribute(value=base, attr=name):
            _set_attribute(machine, state, target, machine.evaluate(base, state), name, value)
        case ast.Subscript(value=base, slice=key):
            _set_item(machine, state, target, machine.evaluate(base, state), machine.evaluate(key, state), value)


def _set_name(state: State, name: str, value: Value) -> None:
    if name not in state.outer_names:
        state.names[name] = value
        return
    here = state.parent
    while here is not None:
        if name in here.names:
            here.names[name] = value
            return
        here = here.parent
    state.module.names[name] = value


def spread(value: Value, elements: list[ast.expr]) -> list[Value]:
    """Return one value for each of the targets `elements` that `value` is unpacked into."""
    wanted = len(elements)
    starred = next((i for i, element in enumerate(elements) if isinstance(element, ast.Starred)), None)
    match value:
        case Items(items=items, complete=True) if starred is None and len(items) == wanted:
            return list(items)
        case Items(kind=kind, items=items, complete=True) if starred is not None and len(items) >= wanted - 1:
            after = wanted - starred - 1
            middle = Items(kind, items[starred : len(items) - after])
            return [*items[:starred], middle, *items[len(items) - after :]]
        case Tensor(symbolic=symbolic):
            return [Tensor(symbolic=symbolic, parents=(value,)) for _ in elements]
        case Choice(options=options):
            columns = zip(*(spread(option, elements) for option in options), strict=True)
            return [joins.join_all(column) for column in columns]
        case Generator() | Items() | Mapping():
            return [Unknown("unpacked")] * wanted
        case _:
            return [Element(value, index) for index in range(wanted)]


def _set_attribute(
    machine: Machine, state: State, node: ast.Attribute, base: Value, name: str, value: Value
) -> None:
    for owner in options_of(base):
        match owner:
            case Instance() | Model(instance=Instance()):
                instance = owner if isinstance(owner, Instance) else owner.instance
                assert instance is not None
                old = instance.attributes.get(name)
                joined = joins.join(old, value) if old is not None and state.branches else value
                instance.attributes[name] = joined
                if isinstance(owner, Model) and name == "run_eagerly":
                    _note_attribute(machine, state, node, owner, name, value)
            case Imported(module=module):
                module.names[name] = value
            case Class():
                owner.members[name] = value
            case Mapping():
                owner.items[name] = value
            case _:
                root, dotted = _root_of(owner, name)
                machine.attributes.setdefault(id(root), (root, {}))[1][dotted] = value
                _note_attribute(machine, state, node, root, dotted, value)


def _root_of(owner: Value, name: str) -> tuple[Value, str]:
    while isinstance(owner, Attribute):
        name = f"{owner.name}.{name}"
        owner = owner.base
    return owner, name


def _note_attribute(
    machine: Machine, state: State, node: ast.Attribute, owner: Value, name: str, value: Value
) -> None:
    from tflint_gpu.program.machine import Site

    site = Site(state.module.location(node), (Const(name), value), {})
    machine.record("builtins.setattr", site, state, receiver=owner)


def _set_item(machine: Machine, state: State, node: ast.Subscript, base: Value, key: Value, value: Value) -> None:
    match base:
        case External(name="os.environ"):
            if isinstance(key, Const) and isinstance(key.value, str):
                note_setting(machine, state, key.value, value, node)
        case Mapping(items=items):
            if isinstance(key, Const) and state.branches and folding.hashable(key.value) and key.value in items:
                value = joins.join(items[key.value], value)
            folding.store_item(base, key, value)
        case Items():
            base.complete = False
        case _:
            return


def note_setting(machine: Machine, state: State, name: str, value: Value, node: Any) -> None:
    """Note that the program sets the environment variable `name`."""
    if not machine.muted:
        machine.program.settings.append(
            Setting(name, value, state.module.location(node), state.qualname, state.context)
        )


def _delete(_machine: Machine, state: State, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.names.pop(target.id, None)


def _scope_names(_machine: Machine, state: State, node: ast.Global | ast.Nonlocal) -> None:
    state.outer_names.update(node.names)


# --- control


def _expression(machine: Machine, state: State, node: ast.Expr) -> None:
    machine.evaluate(node.value, state)


def _return(machine: Machine, state: State, node: ast.Return) -> None:
    state.returns.append(machine.evaluate(node.value, state))
    state.ended = True


def _end(_machine: Machine, state: State, _node: ast.stmt) -> None:
    state.ended = True


def _raise(machine: Machine, state: State, node: ast.Raise) -> None:
    machine.evaluate(node.exc, state)
    state.ended = True


def _assert(machine: Machine, state: State, node: ast.Assert) -> None:
    _test(machine, state, node.test)


def _test(machine: Machine, state: State, node: ast.expr) -> Value:
    value = machine.evaluate(node, state)
    if isinstance(value, Tensor) and not value.symbolic:
        from tflint_gpu.program.machine import Site

        machine.record("builtins.bool", Site(state.module.location(node), (value,), {}), state)
    return value


def _if(machine: Machine, state: State, node: ast.If) -> None:
    test = _test(machine, state, node.test)
    known = joins.truth(test)
    if known is not None:
        machine.execute(node.body if known else node.orelse, state)
        return
    branch(
        machine,
        state,
        [
            (machine.guard(node.test, test, state, positive=True), node.body),
            (machine.guard(node.test, test, state, positive=False), node.orelse),
        ],
    )


def branch(machine: Machine, state: State, arms: list[tuple[Guard, list[ast.stmt]]]) -> None:
    """Run each arm from the same start and join what they leave."""
    start = dict(state.names)
    outer = state.context
    ends: list[dict[str, Value]] = []
    state.branches += 1
    for guard, body in arms:
        _restore(state, start)
        state.context = outer.inside(guard)
        state.ended = False
        machine.execute(body, state)
        if not state.ended:
            ends.append(dict(state.names))
    state.branches -= 1
    state.context = outer
    state.ended = not ends
    if ends:
        _restore(state, join_names(ends))
    else:
        _restore(state, start)


def _restore(state: State, names: dict[str, Value]) -> None:
    state.names.clear()
    state.names.update(names)


def join_names(ends: list[dict[str, Value]]) -> dict[str, Value]:
    """Join the variables of several ends of control; one that an arm does not set keeps the others' value."""
    result = dict(ends[0])
    for end in ends[1:]:
        for name, value in end.items():
            known = result.get(name)
            result[name] = value if known is None or known is value else joins.join(known, value)
    return result


def kind_of_guard(test: ast.expr, value: Value, *, positive: bool) -> tuple[str, int | None]:
    """Return the kind of guard that a branch on `test` is, and its period where that is literal."""
    if positive:
        every = _period(test, value)
        if every is not None:
            return "periodic", every or None
        if _is_debug(test, value):
            return "debug", None
    elif isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod):
        return "periodic", _period(test, value) or None
    return "branch", None


def _period(test: ast.expr, value: Value) -> int | None:
    """Return n for a test like ``step % n == 0``, 0 where n is not literal, None for other tests."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            for part in walk(value):
                if isinstance(part, Operation) and part.operator == "%" and isinstance(part.operands[1], Const):
                    period = part.operands[1].value
                    return period if isinstance(period, int) else 0
            return node.right.value if _is_int(node.right) else 0  # type: ignore[attr-defined]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return 0
    return None


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_debug(test: ast.expr, value: Value) -> bool:
    if isinstance(value, Const) and value.value:
        return False
    if isinstance(test, ast.UnaryOp):
        return False
    names = [node.id for node in ast.walk(test) if isinstance(node, ast.Name)]
    names += [node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)]
    names += [str(node.value) for node in ast.walk(test) if isinstance(node, ast.Constant)]
    return any(_DEBUG.search(name) for name in names)


def _try(machine: Machine, state: State, node: ast.Try) -> None:
    start = dict(state.names)
    machine.execute(node.body, state)
    if not state.ended:
        machine.execute(node.orelse, state)
    after, ended = dict(state.names), state.ended
    outer = state.context
    for handler in node.handlers:
        _restore(state, {**start, **after})
        state.ended = False
        if handler.name:
            state.names[handler.name] = Unknown("exception")
        state.context = outer.inside(Guard(state.module.location(handler), "fallback"))
        state.branches += 1
        machine.execute(handler.body, state)
        state.branches -= 1
        ended = ended and state.ended
        for name, value in state.names.items():
            after.setdefault(name, value)
    state.context = outer
    _restore(state, after)
    state.ended = False
    machine.execute(node.finalbody, state)
    state.ended = state.ended or ended


def _match(machine: Machine, state: State, node: ast.Match) -> None:
    subject = machine.evaluate(node.subject, state)
    location = state.module.location(node)
    arms = []
    for case in node.cases:
        chosen = _matches(case.pattern, subject)
        if chosen is False:
            continue
        for part in ast.walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                state.names[name] = Unknown("matched")
        arms.append((Guard(location, "branch", None, subject), case.body))
        if chosen:
            break
    if len(arms) == 1 and chosen:
        machine.execute(arms[0][1], state)
    elif arms:
        branch(machine, state, [*arms, (Guard(location, "branch", None, subject), [])])


def _matches(pattern: ast.pattern, subject: Value) -> bool | None:
    if (
        isinstance(pattern, ast.MatchValue)
        and isinstance(pattern.value, ast.Constant)
        and isinstance(subject, Const)
    ):
        return None if subject.soft else bool(pattern.value.value == subject.value)
    return None


def _with(machine: Machine, state: State, node: ast.With | ast.AsyncWith) -> None:
    outer = state.context
    for item in node.items:
        value = machine.evaluate(item.context_expr, state)
        entered = _entered(machine, state, value)
        if item.optional_vars is not None:
            assign(machine, state, item.optional_vars, entered)
        state.context = state.context.inside(_scope(value, state.module.location(item.context_expr)))
    machine.execute(node.body, state)
    state.context = outer


def _entered(machine: Machine, state: State, value: Value) -> Value:
    match value:
        case Generator():
            return machine.draw(value, state.context)
        case Instance():
            method = attributes.attribute(machine, state, value, "__enter__")
            if isinstance(method, Function):
                return machine.follow(method, (), {}, state.context)
            return value
        case _:
            return value


def _scope(value: Value, location: Any) -> Scope:
    for option in options_of(value):
        if isinstance(option, Produced):
            if option.callee == "tf.device":
                return Scope(location, "device", option.call.argument("device_name"))
            if option.callee == "tf.distribute.Strategy.scope":
                return Scope(location, "strategy", option.call.receiver)
            if option.callee == "tf.GradientTape":
                return Scope(location, "tape", option)
    return Scope(location, "other", value)


# --- definitions


def _function(machine: Machine, state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    qualname = f"{state.qualname}.{node.name}" if state.qualname else node.name
    location = state.module.location(node)
    function = Function(node.name, qualname, state.module, location, node, evaluate.closure_of(state))
    machine.defined.append(function)
    value: Value = function
    for decorator in reversed(node.decorator_list):
        value = decorate(machine, state, value, machine.evaluate(decorator, state), decorator, function)
    if isinstance(value, Attribute):
        return  # a setter: the property stands
    _set_name(state, node.name, value)


def decorate(
    machine: Machine, state: State, value: Value, decorator: Value, node: ast.expr, function: Function
) -> Value:
    """Return `value` as `decorator` leaves it; a decorator that is not known leaves it as it is."""
    from tflint_gpu.program.machine import Site

    match decorator:
        case External(name="builtins.staticmethod"):
            function.kind = "static"
        case External(name="builtins.classmethod"):
            function.kind = "class"
        case External(name="builtins.property" | "functools.cached_property"):
            function.kind = "property"
        case Attribute(name="setter" | "deleter" | "getter"):
            return decorator
        case External(name="tf.function") | Partial() | Function() | Instance():
            result = machine.call(decorator, Site(state.module.location(node), (value,), {}), state)
            if isinstance(result, Function | GraphFunction | Partial | Class):
                return result
    return value


def _class(machine: Machine, state: State, node: ast.ClassDef) -> None:
    from tflint_gpu.program.machine import State as Activation

    qualname = f"{state.qualname}.{node.name}" if state.qualname else node.name
    bases = tuple(machine.evaluate(base, state) for base in node.bases)
    cls = Class(node.name, qualname, state.module, state.module.location(node), node, bases)
    body = Activation(
        state.module, cls.members, qualname, state.context, parent=state, function=state.function, is_class=True
    )
    machine.execute(node.body, body)
    for member_value in cls.members.values():
        inner = member_value.function if isinstance(member_value, GraphFunction) else member_value
        if isinstance(inner, Function) and inner.owner is None:
            inner.owner = cls
    machine.defined.append(cls)
    _set_name(state, node.name, cls)


# --- imports


def _import(machine: Machine, state: State, node: ast.Import) -> None:
    for alias in node.names:
        whole = import_module(machine, state.module, 0, alias.name)
        if alias.asname:
            state.names[alias.asname] = whole if whole is not None else External(canonical(alias.name))
            continue
        head = alias.name.partition(".")[0]
        if whole is None:
            state.names[head] = External(canonical(head))
        else:
            first = whole if head == alias.name else import_module(machine, state.module, 0, head)
            state.names[head] = first if first is not None else whole


def _import_from(machine: Machine, state: State, node: ast.ImportFrom) -> None:
    module = node.module or ""
    inside = import_module(machine, state.module, node.level, module)
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            _import_star(machine, state, inside, module)
        elif isinstance(inside, Imported):
            state.names[name] = attributes.member_of(machine, inside.module, alias.name)
        elif node.level:
            state.names[name] = Unknown(f"import from {'.' * node.level}{module}")
        else:
            state.names[name] = External(canonical(f"{module}.{alias.name}"))


def _import_star(machine: Machine, state: State, inside: Value | None, module: str) -> None:
    if isinstance(inside, Imported):
        run_module(machine, inside.module)
        state.names.update({n: v for n, v in inside.module.names.items() if not n.startswith("_")})
        state.module.stars.extend(inside.module.stars)
    elif module:
        state.module.stars.append(canonical(module))


def import_module(machine: Machine, importer: Module, level: int, name: str) -> Value | None:
    """Return the project's module that an import means, None where it lies outside the project."""
    path = machine.index.resolve(importer.path, level, name)
    if path is not None:
        module = machine.module_at(path)
        if module is not None:
            run_module(machine, module)
            return Imported(module)
    folder = machine.index.is_package(importer.path, level, name) if path is None else None
    if folder is not None and (level or not _is_library(name)):
        return Imported(machine.namespace_package(folder, name))
    return None


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in ("tensorflow", "keras", "numpy", "tf_keras", "os", "sys")


def submodule(machine: Machine, module: Module, name: str) -> Module | None:
    """Return the module `name` of the package that `module` is, None where there is none."""
    path = PurePosixPath(module.path)
    if path.name != "__init__.py":
        return None
    for candidate in (path.parent / f"{name}.py", path.parent / name / "__init__.py"):
        found = machine.module_at(candidate)
        if found is not None:
            run_module(machine, found)
            return found
    return None


def run_module(machine: Machine, module: Module) -> None:
    """Execute the body of `module` once; one that does not parse defines nothing."""
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.machine import State as Activation

    if module.executed:
        return
    module.executed = True
    if module.tree is None:
        return
    body = module.tree.body
    machine.muted += module.is_test
    try:
        machine.execute(body, Activation(module, module.names, "", Context()))
    finally:
        machine.muted -= module.is_test


STATEMENTS: dict[type, Callable[[Machine, State, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Global: _scope_names,
    ast.Nonlocal: _scope_names,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Break: _end,
    ast.Continue: _end,
    ast.If: _if,
    ast.For: loops.run_for,
    ast.AsyncFor: loops.run_for,
    ast.While: loops.run_while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = _try

__all__ = ["STATEMENTS", "assign", "branch", "member", "run_module"]
