"""A call that the program makes: what is called, with what, and where it stands."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tflint_gpu.findings import Location
from tflint_gpu.program.api import position_of
from tflint_gpu.program.values import Const, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.modules import Module


@dataclass(slots=True, eq=False)
class Call:
    """One call that the program makes, in the context that leads to it.

    A method in a chain of calls stands where its own name does, so that ``ds.map(f).batch(8)`` has two places.

    The same text is recorded once for every context it is reached in: a helper called from a loop and from
    module level yields two calls. `callee` is canonical for things outside the project (``tf.data.Dataset.map``,
    ``keras.layers.LSTM``, ``keras.Model.fit``, ``numpy.load``, ``builtins.print``), the qualified name
    ``<module>:<qualname>`` for the project's own functions, and "" when unknown. Methods of values whose type
    is known are named by that type (``keras.Model.predict``, ``tf.Tensor.numpy``).
    """

    callee: str
    location: Location
    qualname: str
    module: Module
    context: Context
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict)
    #: The value a method was called on.
    receiver: Value | None = None
    #: Arguments of unknown number were passed (``*args``/``**kwargs``): an absent argument is then unknown.
    open: bool = False
    #: The text of the call, where there is one.
    node: ast.Call | None = None

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """Return the argument `name`, given by keyword or at its position; None where it is not given.

        The position comes from the signature table of `tflint_gpu.program.api` unless `position` says it.
        Where ``**kwargs`` of unknown content were passed, an absent argument is `Unknown`.
        """
        if name in self.kwargs:
            return self.kwargs[name]
        if position is None:
            position = position_of(self.callee, name)
        if position is not None and position < len(self.args):
            return self.args[position]
        return Unknown("**kwargs") if self.open else None

    def constant(self, name: str, position: int | None = None) -> Any:
        """Return the literal value of argument `name`; None where it is absent or not a constant."""
        value = self.argument(name, position)
        return value.value if isinstance(value, Const) else None

    def place_of(self, name: str, position: int | None = None) -> Location:
        """Return where argument `name` stands, or the call itself where it is not given."""
        if self.node is None:
            return self.location
        text: ast.AST | None = next((keyword for keyword in self.node.keywords if keyword.arg == name), None)
        if text is None:
            if position is None:
                position = position_of(self.callee, name)
            if position is not None and position < len(self.node.args):
                before = self.node.args[: position + 1]
                text = None if any(isinstance(part, ast.Starred) for part in before) else before[-1]
        return self.location if text is None else self.module.location(text)
