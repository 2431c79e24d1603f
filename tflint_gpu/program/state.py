"""The state of one activation, and a call before it is known what is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from tflint_gpu.findings import Location
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.modules import Module
    from tflint_gpu.program.values import Function, Value


@dataclass(slots=True, eq=False)
class State:
    """One activation: the variables of a function, module or class body, and where control stands in it."""

    module: Module
    names: dict[str, Value]
    qualname: str
    context: Context
    parent: State | None = None
    function: Function | None = None
    is_class: bool = False
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    outer_names: set[str] = field(default_factory=set)
    #: Set when the rest of the block cannot run: return, raise, break, continue.
    ended: bool = False
    depth: int = 0
    #: Branches of unknown outcome entered since the activation began.
    branches: int = 0

    def lookup(self, name: str) -> Value | None:
        """Return the variable `name` as this code sees it, None where neither it nor a closure has it."""
        here: State | None = self
        while here is not None:
            if name in here.names and not (here.is_class and here is not self):
                return here.names[name]
            here = here.parent
        return self.module.names.get(name)

    def closure(self) -> State | None:
        """Return the state that a function defined here closes over: never a class body."""
        here: State | None = self
        while here is not None and here.is_class:
            here = here.parent
        return here


@dataclass(slots=True, eq=False)
class Site:
    """A call in the text, before it is known what is called."""

    location: Location
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    open: bool = False
    node: ast.Call | None = None
