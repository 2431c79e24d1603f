"""The abstract machine: it runs a project's text over symbolic values and notes what the code would do.

Functions are followed into at every call with the values they are given, so that a pipeline built in a
helper, a method or another module is the same pipeline. Depth, repetition and work are bounded; what goes past a
bound is unknown.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

from tflint_gpu.program import branches, evaluate, execute, invoke, joins, objects
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Activation, Context, Guard, Loop, Region
from tflint_gpu.program.parameters import bind_arguments
from tflint_gpu.program.state import Site, State
from tflint_gpu.program.values import (
    Class,
    Const,
    Element,
    Function,
    Generator,
    Instance,
    Operation,
    Parameter,
    Produced,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tflint_gpu.findings import Location
    from tflint_gpu.program.modules import Module, ModuleIndex
    from tflint_gpu.program.views import Model, Program

#: Functions followed into one another.
MAX_DEPTH = 24
#: Times that one function is followed with different arguments in one program.
MAX_VISITS = 12
#: Expressions evaluated in one program, per line of its text, with a floor for short ones.
WORK_PER_LINE = 120
WORK_FLOOR = 60_000


#: Calls are invoked, every other expression is evaluated.
_EXPRESSIONS: dict[type, Callable[[Machine, State, Any], Value]] = {
    **evaluate.EXPRESSIONS,
    ast.Call: invoke.evaluate_call,
}


class OutOfWorkError(Exception):
    """The bound on work was reached; what was seen so far stands."""


class Machine:
    """Runs one program and fills its views."""

    def __init__(self, program: Program, index: ModuleIndex, modules: dict[Any, Module], work: int) -> None:
        self.program = program
        self.index = index
        self.modules = modules
        self.work = work
        #: Calls are noted unless this is above zero (unit tests, code that is only read for what it defines).
        self.muted = 0
        self.followed: set[int] = set()
        self.visits: Counter[int] = Counter()
        self.active: list[Any] = []
        self.memo: dict[tuple[Any, ...], tuple[Value, tuple[Value, ...]]] = {}
        #: Functions and classes met, in order: those that nobody calls are read on their own at the end.
        self.defined: list[Function | Class] = []
        self.instances: dict[int, Value] = {}
        #: Attributes set on values that are not the project's (``options.autotune.enabled = False``).
        self.attributes: dict[int, tuple[Value, dict[str, Value]]] = {}
        #: Command-line options by parser, flags by name.
        self.parsers: dict[int, tuple[Value, dict[str, Value]]] = {}
        self.flags: dict[str, Value] = {}
        self.variables_touched = 0
        #: Datasets drawn from by ``next``: (dataset, call).
        self.draws: list[tuple[Value, Call]] = []
        self.models: dict[int, Model] = {}
        self.trained: set[tuple[int, ...]] = set()
        self.last_tape: Call | None = None

    # --- the switchboard

    def evaluate(self, node: ast.expr | None, state: State) -> Value:
        """Return what `node` stands for in `state`."""
        if node is None:
            return Const(None)
        self.work -= 1
        if self.work < 0:
            raise OutOfWorkError
        return _EXPRESSIONS.get(type(node), evaluate.unknown)(self, state, node)

    def execute(self, body: Iterable[ast.stmt], state: State) -> None:
        """Run the statements of `body` in `state`, up to the first that ends the block."""
        context, branched = state.context, state.branches
        for statement in body:
            if state.ended:
                return
            try:
                execute.STATEMENTS.get(type(statement), execute.ignore)(self, state, statement)
            except RecursionError:
                state.context, state.branches = context, branched
                execute.give_up(state, statement)

    def call(self, function: Value, site: Site, state: State) -> Value:
        """Return the result of calling `function` as `site` does."""
        return invoke.call(self, state, function, site)

    def module_at(self, path: Any) -> Module | None:
        """Return the module of the project at `path`, None where this program has none there."""
        return self.modules.get(path)

    def namespace_package(self, folder: Any, name: str) -> Module:
        """Return an empty module for a folder that is a package without ``__init__.py``."""
        path = f"{folder}/__init__.py"
        if path not in self.modules:
            from tflint_gpu.program.modules import Module as Empty
            from tflint_gpu.source.texts import Source

            self.modules[path] = Empty(path, name, Source(path, ""), executed=True)
        return self.modules[path]

    def model_for(self, location: Location) -> Model:
        """Return a model of which nothing is known but that it is one."""
        from tflint_gpu.program.views import Model as Made

        return Made("unknown", location)

    # --- noting what happens

    def record(
        self,
        callee: str,
        site: Site,
        state: State,
        receiver: Value | None = None,
        context: Context | None = None,
    ) -> Call:
        """Note a call and return it."""
        noted = Call(
            callee,
            site.location,
            state.qualname,
            state.module,
            context or state.context,
            site.args,
            site.kwargs,
            receiver,
            site.open,
            site.node,
        )
        if not self.muted:
            self.program.calls.append(noted)
        return noted

    # --- following functions

    def follow(
        self,
        function: Function,
        args: Sequence[Value],
        kwargs: dict[str, Value],
        context: Context,
        *,
        open_call: bool = False,
        alone: bool = False,
        site: Location | None = None,
    ) -> Value:
        """Run `function` with these arguments and return what it returns.

        `open_call` says that further arguments of unknown content are passed; `alone`, that nobody in the project
        calls it, so that its arguments are unknown and its defaults soft; `site` is the place of the call.
        """
        node = function.node
        if len(self.active) >= MAX_DEPTH or node in self.active:
            return Unknown("recursion")
        key = (id(node), id(function.bound), context.telling, alone, *map(_key, args), *_kwargs_key(kwargs))
        known = self.memo.get(key)
        if known is not None:
            return known[0]
        self.visits[id(node)] += 1
        if self.visits[id(node)] > MAX_VISITS:
            return Unknown("too many visits")
        self.followed.add(id(node))
        state = State(
            function.module,
            {},
            function.qualname,
            context.inside(Activation(function.location, function, site)),
            parent=function.closure,
            function=function,
            depth=len(self.active),
        )
        bind_arguments(self, function, args, kwargs, state, open_call=open_call, alone=alone)
        self.active.append(node)
        try:
            result = self._run(function, state)
        finally:
            self.active.pop()
        self.memo[key] = (result, (*args, *kwargs.values()))
        return result

    def _run(self, function: Function, state: State) -> Value:
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, state)
        if evaluate.is_generator(function):
            return Generator(function, state)
        self.execute(node.body, state)
        if not state.returns:
            return Const(None)
        return joins.join_all(state.returns)

    def draw(self, generator: Generator, context: Context) -> Value:
        """Run the body of `generator` in `context` and return what it yields."""
        node = generator.function.node
        if node in self.active or len(self.active) >= MAX_DEPTH:
            return Unknown("recursion")
        bound = generator.state
        state = State(
            bound.module,
            dict(bound.names),
            bound.qualname,
            context.inside(Activation(generator.function.location, generator.function)),
            parent=bound.parent,
            function=bound.function,
        )
        self.active.append(node)
        try:
            self.execute(node.body, state)
        finally:
            self.active.pop()
        return joins.join_all(state.yields) if state.yields else Unknown("yields nothing")

    # --- regions

    def follow_in(
        self,
        function: Value,
        args: Sequence[Value],
        region: Region,
        state: State,
        kwargs: dict[str, Value] | None = None,
    ) -> Value:
        """Call `function` the way the runtime does, as code of `region`."""
        outer = state.context
        state.context = outer.inside(region)
        try:
            return self.call(function, Site(region.location, tuple(args), kwargs or {}), state)
        finally:
            state.context = outer

    def guard(self, test: ast.expr, value: Value, state: State, *, positive: bool) -> Guard:
        """Return the guard frame of one arm of a branch on `test`."""
        location = state.module.location(test)
        kind, every = branches.kind_of_guard(test, value, positive=positive)
        return Guard(location, kind, every, value, not positive)


def _key(value: Value) -> Any:
    match value:
        case Const(value=plain, soft=soft):
            return (type(plain).__name__, repr(plain), soft)
        case Tensor(symbolic=symbolic, origin=origin):
            return ("tensor", id(origin) if symbolic else 0)
        case Unknown() | Parameter() | Operation():
            return type(value).__name__
        case Element(source=source):
            return ("element", id(source))
        case Produced(call=call):
            return ("produced", call.callee, call.location)
        case _:
            return id(value)


def _kwargs_key(kwargs: dict[str, Value]) -> Iterable[Any]:
    return ((name, _key(value)) for name, value in kwargs.items())


def loop_around(context: Context) -> Loop | None:
    """Return the innermost loop around `context`, across regions and callers."""
    return next((frame for frame in context if isinstance(frame, Loop)), None)


def self_of(machine: Machine, cls: Class, state: State) -> Value:
    """Return the object to read the methods of `cls` with: one that the program makes, or one made up."""
    known = machine.instances.get(id(cls))
    if known is None:
        site = Site(cls.location, (), {}, open=True)
        known = objects.instantiate(machine, state, cls, site, alone=True)
    return known


__all__ = ["Instance", "Machine", "OutOfWorkError", "Site", "State", "loop_around", "self_of"]
