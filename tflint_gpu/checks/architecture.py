"""What is known of a model's architecture: its inputs, its layers inside wrappers, the calls it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.program.values import Call, Produced, Tensor, Value, walk
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
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
    for value in (*call.args, *call.kwargs.values()):
        for part in walk(value):
            if isinstance(part, Tensor) and part.symbolic:
                return True
    return False
