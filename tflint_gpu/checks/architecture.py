"""What is known of a model's architecture: its inputs, its layers inside wrappers, the calls it is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Choice, Items, Mapping, Operation, Produced, Subscript, Tensor, Value
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.views import Program

#: Layers that hold another one.
_WRAPPERS = ("keras.layers.Bidirectional", "keras.layers.TimeDistributed", "keras.layers.Wrapper")

INPUTS = ("keras.Input", "keras.layers.InputLayer")


def layers_of(model: Model) -> Iterator[Call]:
    """Yield the constructions of the layers of `model`, those inside wrappers behind their wrapper."""
    for call in model.layers:
        yield call
        inner = call.argument("layer", 0) if call.callee in _WRAPPERS else None
        if isinstance(inner, Produced):
            yield inner.call


def inputs_of(model: Model, program: Program) -> list[Call]:
    """Return the calls that make the inputs of `model`: ``keras.Input``, ``InputLayer``, in any style."""
    found = [call for call in model.layers if call.callee in INPUTS]
    given = list(model.call.args) + list(model.call.kwargs.values()) if model.call else []
    if model.kind == "sequential":
        added = (call for call in program.calls_to("keras.Sequential.add") if call.receiver is model)
        given += [call.args[0] for call in added if call.args]
    for origin in _origins(*given):
        if origin.callee == "keras.Input" and origin not in found:
            found.append(origin)
    return found


def made_of(model: Model, call: Call) -> bool:
    """Say whether `call` made one of the symbolic tensors between the inputs and outputs of `model`."""
    outputs = model.call.argument("outputs", 1) if model.call and model.kind == "functional" else None
    return outputs is not None and any(origin is call for origin in _origins(outputs))


def _origins(*values: Value) -> Iterator[Call]:
    for value in values:
        for part in walk(value):
            if isinstance(part, Tensor) and part.origin is not None:
                yield part.origin
                if isinstance(part.origin.receiver, Model) and part.origin.receiver.call is not None:
                    yield from _origins(
                        *part.origin.receiver.call.args, *part.origin.receiver.call.kwargs.values()
                    )


def is_symbolic(call: Call) -> bool:
    """Say whether `call` is applied to the symbolic tensors that functional models are built from."""
    values = (*call.args, *call.kwargs.values())
    return any(isinstance(part, Tensor) and part.symbolic for value in values for part in near(value))


def near(value: Value | None) -> Iterator[Value]:
    """Yield `value` and what it is written with, down to the results of other calls, not their arguments.

    Each part once and a bounded number of them: sums that are added to themselves double with every round.
    """
    return walk(value, _written_with)


def _written_with(value: Value) -> Iterable[Value | None]:
    match value:
        case Tensor(origin=None, parents=parts) | Items(items=parts) | Operation(operands=parts):
            return parts
        case Choice(options=parts):
            return parts
        case Subscript(base=base, key=key):
            return (base, key)
        case Mapping(items=items):
            return items.values()
        case _:
            return ()


def place_of_layer(made: Call, model: Model, program: Program) -> Location:
    """Return where the layer that `made` makes enters `model`: applied, added or listed; else where it is made."""
    for call in program.calls_to("keras.layers.Layer.__call__", "keras.Sequential.add"):
        layer = call.receiver if call.callee.endswith("__call__") else call.args[0] if call.args else None
        if not isinstance(layer, Produced) or layer.call is not made:
            continue
        if call.receiver is model or made_of(model, call) or call in model.calls:
            return call.location
    return _place_in_list(made, model) or made.location


def _place_in_list(made: Call, model: Model) -> Location | None:
    """Return the place of a layer in the list that a sequential model is given."""
    given = model.call.argument("layers", 0) if model.call and model.kind == "sequential" else None
    if model.call is None or not isinstance(given, Items):
        return None
    node = model.call.node
    if node is None:
        return None
    named = next((keyword.value for keyword in node.keywords if keyword.arg == "layers"), None)
    display = named or (node.args[0] if node.args else None)
    if not isinstance(display, ast.List | ast.Tuple) or len(display.elts) != len(given.items):
        return None
    for item, element in zip(given.items, display.elts, strict=True):
        if isinstance(item, Produced) and item.call is made:
            return model.call.module.location(element)
    return None
