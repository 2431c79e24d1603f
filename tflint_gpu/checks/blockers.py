"""What keeps a function from being traced: Python that would run once instead of in every call, or not at all.

The list follows the preconditions of Hybridize Functions (Khatchadourian et al., FASE 2025). What cannot be
read is a blocker too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.checks.loops import changes_every_round
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Activation, Region
from tflint_gpu.program.questions import leaves, options_of
from tflint_gpu.program.values import Const, External, Function, Instance, Produced, Tensor
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program

#: Calls that compute in the graph, or that tracing settles once and for all.
_TRACEABLE = ("tf.", "keras.", "math.", "collections.OrderedDict")
_STATIC = frozenset(
    f"builtins.{name}"
    for name in (
        *("range", "len", "zip", "enumerate", "isinstance", "issubclass", "hasattr", "getattr", "list", "tuple"),
        *("dict", "reversed", "super", "type", "callable", "sum", "abs", "list.append", "list.extend"),
        *("list.insert", "dict.update", "dict.get", "dict.items", "dict.keys", "dict.values", "str.format"),
    )
)

#: Packages that know nothing of graphs.
_PYTHON = {*sys.stdlib_module_names, "builtins", "numpy", "scipy", "pandas", "matplotlib", "PIL", "cv2", "tqdm"}

#: Regions whose code is traced under ``fit`` or by ``tf.function``.
_TRACED = ("graph", "train-step", "test-step", "model", "loss")

#: Calls of TensorFlow and Keras that need Python all the same, with what they do.
_NEEDS_PYTHON = {
    "tf.Tensor.numpy": ".numpy() has no value while the function is traced",
    "tf.Variable.numpy": ".numpy() has no value while the function is traced",
    "tf.Tensor.item": ".item() has no value while the function is traced",
    "tf.Variable.assign_from_numpy": "it needs a value while the function is traced",
    "tf.Variable": "it makes a variable in every call",
    "keras.Model.predict": "predict() starts a loop of its own",
    "keras.Model.fit": "fit() starts a loop of its own",
    "keras.Model.evaluate": "evaluate() starts a loop of its own",
    "keras.Model.train_on_batch": "train_on_batch() is a step of its own",
    "keras.Model.test_on_batch": "test_on_batch() is a step of its own",
    "keras.Model.predict_on_batch": "predict_on_batch() is a step of its own",
    "keras.Model.get_weights": "get_weights() copies to NumPy",
    "keras.Model.set_weights": "set_weights() copies from NumPy",
    "keras.Model.save": "it writes a file",
    "keras.Model.save_weights": "it writes a file",
}
_MAKES_STATE = ("keras.layers.", "keras.optimizers.", "keras.metrics.", "keras.Model", "keras.Sequential")

#: Methods that change what they are called on, where that is not known to be a list of the function's own.
_EFFECTS = {
    "builtins.print": "print() would run when the function is traced, not in every call",
    "builtins.float": "float() of a tensor has no value while the function is traced",
    "builtins.int": "int() of a tensor has no value while the function is traced",
    "builtins.bool": "a branch on a tensor is traced both ways, and what only one of them makes is lost",
    "builtins.open": "it opens a file",
    "builtins.round": "round() of a tensor has no value while the function is traced",
    "builtins.setattr": "it would set the attribute when the function is traced, not in every call",
}


@dataclass(frozen=True, slots=True)
class Blocker:
    """A line that would not do the same in a graph function, and why not; if not `known`, that may not."""

    location: Location
    reason: str
    known: bool = True


def blockers(function: Function, program: Program) -> list[Blocker]:
    """Return what keeps `function` from being made a ``tf.function``, in the order of the text."""
    found: dict[tuple[str, int | None, int], Blocker] = {}
    calls = _calls_by_text(program)
    for blocker in (*_in_calls_of(function, program), *_inside(function, calls, [])):
        line = (blocker.location.path, blocker.location.cell, blocker.location.line)
        if line not in found or (blocker.known and not found[line].known):
            found[line] = blocker
    return sorted(found.values(), key=lambda blocker: blocker.location)


def blockers_inside(function: Function, program: Program) -> list[Blocker]:
    """Return what in the text of `function` needs to run in Python, whoever calls it."""
    return sorted(_inside(function, _calls_by_text(program), []), key=lambda blocker: blocker.location)


def blockers_under_keras(program: Program, model: Model) -> list[Blocker]:
    """Return what in the code that ``fit`` traces for `model` needs to run in Python; of what is not known, one.

    That is its own step and forward pass, and the losses and metrics that are functions of the project.
    """
    calls = _calls_by_text(program)
    found = [blocker for function in _traced(program) for blocker in _inside(function, calls, [])]
    unread = model.kind in ("unknown", "loaded") or (model.kind == "subclass" and model.instance is None)
    if unread or not all(
        _is_plain(value) for call in model.compiles for value in (*call.args, *call.kwargs.values())
    ):
        place = model.compiles[0].location if model.compiles else model.location
        found.append(Blocker(place, "not all that is traced for this model is known", known=False))
    return sorted(found, key=lambda blocker: blocker.location)


def _traced(program: Program) -> list[Function]:
    """Return the project's functions that Keras or ``tf.function`` traces, each once."""
    found: dict[int, Function] = {}
    for call in program.calls:
        inside: list[Function] = []
        for frame in call.context:
            if isinstance(frame, Region):
                if frame.kind in _TRACED:
                    found.update((id(function.node), function) for function in inside)
                break
            if isinstance(frame, Activation):
                inside.append(frame.function)
    return list(found.values())


def _is_plain(value: Value) -> bool:
    """Say whether an argument of ``compile`` is a name, a setting, a part of Keras or a function that is read."""
    return all(
        isinstance(leaf, Const | External | Function)
        or (isinstance(leaf, Produced) and leaf.callee.startswith(("keras.", "tf.")))
        for leaf in leaves(value)
    )


@dataclass(frozen=True, slots=True)
class _Calls:
    """Every call of a program by the identity of its text, and the branches on tensors by that of the function."""

    by_text: dict[int, list[Call]]
    branches: dict[int, list[Call]]


def _calls_by_text(program: Program) -> _Calls:
    found = _Calls({}, {})
    for call in program.calls:
        if call.node is not None:
            found.by_text.setdefault(id(call.node), []).append(call)
        elif call.callee == "builtins.bool" and call.context.activations:
            function = call.context.activations[0].function
            found.branches.setdefault(id(function.node), []).append(call)
    return found


def _in_calls_of(function: Function, program: Program) -> Iterator[Blocker]:
    """Yield what the callers hand over that would trace the function anew each time, or that is not known."""
    for call in program.calls_to(f"{function.module.name}:{function.qualname}"):
        given: list[tuple[int | str, Value]] = [*enumerate(call.args), *call.kwargs.items()]
        for key, value in given:
            place = call.place_of(key) if isinstance(key, str) else call.place_of("", key)
            if any(changes_every_round(value, loop) for loop in call.context.all_loops):
                yield Blocker(place, "a Python number that changes would trace a new graph in every call")
            elif not _is_known(value):
                reason = "what is passed here is not known; each new shape or number would trace anew"
                yield Blocker(place, reason, known=False)


def _is_known(value: Value) -> bool:
    """Say whether `value` is a tensor, or the same in every call: what NumPy hands over may have any shape."""
    return all(
        isinstance(option, Tensor | Const | External | Function | Instance | Model)
        or (isinstance(option, Produced) and option.callee.startswith("keras."))
        for option in options_of(value)
    )


def _inside(function: Function, calls: _Calls, path: list[Function]) -> Iterator[Blocker]:
    if any(function.node is other.node for other in path):
        yield Blocker(function.location, f"{function.name} calls itself")
        return
    fresh = _fresh(function.node)
    for node in _own_parts(function.node):
        reason = _of_statement(node, function.node, fresh)
        if reason:
            yield Blocker(function.module.location(node), reason)
        elif isinstance(node, ast.Call):
            yield from _of_call(node, function, calls, path, fresh)
    for call in calls.branches.get(id(function.node), ()):
        yield Blocker(call.location, _EFFECTS["builtins.bool"])


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function's body; annotations and decorators do not run in a call."""
    stack: list[ast.AST] = (
        list(reversed(getattr(node, "body", []))) if not isinstance(node, ast.Lambda) else [node.body]
    )
    while stack:
        part = stack.pop()
        yield part
        stack.extend(reversed(list(ast.iter_child_nodes(part))))


def _fresh(node: ast.AST) -> set[str]:
    """Return the names that the function binds to lists and dicts of its own."""
    own = (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Set)
    return {
        target.id
        for part in ast.walk(node)
        if isinstance(part, ast.Assign) and isinstance(part.value, own)
        for target in part.targets
        if isinstance(target, ast.Name)
    }


def _of_statement(node: ast.AST, function: ast.AST, fresh: set[str]) -> str:
    """Return why the statement does not belong in a graph; "" where it may."""
    match node:
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return f"it writes {', '.join(names)} outside the function, which tracing does once"
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            return "a generator cannot be traced"
        case ast.Try():
            return "an exception inside a graph does not reach Python's try"
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            return "it sets an attribute, which happens once, when the function is traced"
        case ast.Subscript(ctx=ast.Store() | ast.Del(), value=base):
            own = isinstance(base, ast.Name) and base.id in fresh
            return "" if own else "it changes a list or dict from outside, which happens once, when it is traced"
        case ast.For(iter=ast.Name(id=name)) if name in _parameters(function):
            return f"it loops over {name} in Python, which unrolls the graph"
    return ""


def _parameters(node: ast.AST) -> set[str]:
    given = getattr(node, "args", None)
    if not isinstance(given, ast.arguments):
        return set()
    return {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _of_call(
    node: ast.Call, function: Function, calls: _Calls, path: list[Function], fresh: set[str]
) -> Iterator[Blocker]:
    place = function.module.location(node)
    known = calls.by_text.get(id(node), [])
    if not known and not (isinstance(node.func, ast.Name) and f"builtins.{node.func.id}" in _STATIC):
        yield Blocker(place, _unread(node), known=False)
        return
    for call in known:
        if ":" in call.callee:
            inner = _called(call)
            if inner is not None:
                yield from _inside(inner, calls, [*path, function])
        elif reason := _of_callee(call, node, fresh):
            yield Blocker(place, reason, known=_is_read(call.callee))
            return


def _called(call: Call) -> Function | None:
    """Return the project's function that `call` runs, where its body is to be read too."""
    name = call.callee.partition(":")[2]
    value = call.module.names.get(name)
    if isinstance(value, Function):
        return value
    if isinstance(call.receiver, Instance):
        member = call.receiver.cls.find(name.rpartition(".")[2])
        return member if isinstance(member, Function) else None
    return None


def _of_callee(call: Call, node: ast.Call, fresh: set[str]) -> str:
    name = call.callee
    if not name:
        return _unread(node)
    if name in _NEEDS_PYTHON:
        return _NEEDS_PYTHON[name]
    if name in _EFFECTS:
        return (
            ""
            if name in ("builtins.float", "builtins.int") and isinstance(call.args[0], Const)
            else _EFFECTS[name]
        )
    if name.startswith("tf.summary."):
        return "a summary in a graph needs a tensor as its step"
    if name.startswith(_MAKES_STATE) and name[0].islower() and _constructs(name):
        return f"it makes {name.rpartition('.')[2]} anew, with variables, in every call"
    if name in _STATIC:
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        mutates = name.endswith((".append", ".extend", ".insert", ".update"))
        own = isinstance(of, ast.Name) and of.id in fresh
        return (
            "" if own or not mutates else "it changes a list from outside, which happens once, when it is traced"
        )
    if name.startswith("numpy."):
        return "NumPy computes while the function is traced, not in every call"
    if name.startswith(_TRACEABLE):
        return ""
    return f"{name} is Python: it runs when the function is traced" if _is_read(name) else _unread(node)


def _is_read(name: str) -> bool:
    """Say whether it is known what calling `name` does: other packages may well compute in the graph."""
    return name.startswith(_TRACEABLE) or name.partition(".")[0] in _PYTHON


def _unread(node: ast.Call) -> str:
    return f"what {ast.unparse(node.func)} does is not known"


def _constructs(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last[:1].isupper() and "()" not in name and name.count(".") <= 2
