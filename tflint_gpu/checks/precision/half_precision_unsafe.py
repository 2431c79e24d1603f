"""TFG705: float16 where it loses the result: everywhere, in the output, or without loss scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.values import Const, External, Items, Mapping, Produced, Tensor, Unknown, Value

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Model, Program

POLICY = "keras.mixed_precision.set_global_policy"
POLICIES = ("keras.mixed_precision.Policy", "keras.DTypePolicy", "keras.dtype_policies.DTypePolicy")

#: Activations whose result underflows or saturates in float16.
_OUTPUTS = ("softmax", "sigmoid")

#: Parts of the names of everything that scales a loss.
_SCALING = ("LossScaleOptimizer", "get_scaled_loss", "scale_loss", "enable_mixed_precision_graph_rewrite")


class HalfPrecisionUnsafe(Check):
    """float16 without the guards that mixed precision needs."""

    needles: ClassVar[tuple[str, ...]] = ("float16",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield pure float16, float16 outputs and unscaled float16 losses; bfloat16 needs none of these guards."""
        if not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        mixed: Call | None = None
        for call in program.calls_to("keras.backend.set_floatx", POLICY):
            value = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
            policy = _policy(value)
            if policy == "float16":
                yield self.at(
                    call,
                    "everything in float16, weights and updates included, under- and overflows, and batch "
                    "statistics with it; use the policy mixed_float16, which is as fast on a GPU",
                    severity=_soft(value),
                    fix=self._mixed(call, value),
                )
            elif policy == "mixed_float16" and not call.context.debug:
                mixed = call
        if mixed is not None:
            yield from self._outputs(program, mixed)
            yield from self._unscaled(program, mixed)

    def _outputs(self, program: Program, mixed: Call) -> Iterator[Finding]:
        for model in program.models:
            for last in output_layers(model, program) if model.trained else ():
                activation = _activation(last)
                if activation not in _OUTPUTS or last.argument("dtype") is not None:
                    continue
                yield self.at(
                    last,
                    f"under mixed_float16 this {activation} output is float16: small probabilities become 0 and "
                    "the "
                    'loss NaN; give this layer dtype="float32"',
                    # A branch may belong to another program that shares the helper: the model need not meet it.
                    severity=Severity.INFO if mixed.context.all_guards else None,
                    related=(Related(mixed.location, "the policy"),),
                    fix=self.change(
                        "add-argument",
                        last.location,
                        'give this layer dtype="float32"',
                        safety="unsafe",
                        name="dtype",
                        value='"float32"',
                    ),
                )

    def _mixed(self, call: Call, value: Value | None) -> Fix | str:
        if call.callee != POLICY or not isinstance(value, Const) or value.soft:
            return "what else relies on the type is not in the code"
        return self.change(
            "rewrite",
            call.place_of("policy", 0),
            "use the policy mixed_float16",
            safety="unsafe",
            text='"mixed_float16"',
            literal="yes",
        )

    def _unscaled(self, program: Program, mixed: Call) -> Iterator[Finding]:
        # A switch may hide the scaling from the calls that are followed; its name in the text is enough.
        if any(word in module.source.text for module in program.modules for word in _SCALING):
            return
        for step in program.steps:
            yield self.at(
                step.apply,
                "a step of one's own under mixed_float16 without loss scaling: small gradients become 0 in "
                "float16; wrap the optimizer in LossScaleOptimizer and scale the loss",
                related=(Related(mixed.location, "the policy"),),
                fix="the optimizer, the loss and the gradients all have to change together",
            )


def output_layers(model: Model, program: Program) -> tuple[Call, ...]:
    """Return the layers that give the results of `model`; none where one of them is not known."""
    outputs = model.call.argument("outputs") if model.kind == "functional" and model.call else None
    several = _elements(outputs)
    if several is not None:
        found = [_layer_of(output, model) for output in several]
        return tuple(layer for layer in found if layer is not None) if all(found) else ()
    last = _last_layer(model, program)
    return (last,) if last is not None else ()


def _elements(outputs: Value | None) -> tuple[Value, ...] | None:
    """Return the outputs of a model that are listed, under names or not; one `Unknown` where some are not seen."""
    if isinstance(outputs, Items):
        return outputs.items if outputs.complete else (Unknown(),)
    if isinstance(outputs, Mapping):
        return tuple(outputs.items.values()) if outputs.other is None else (Unknown(),)
    return None


def _layer_of(output: Value | None, model: Model) -> Call | None:
    """Return the layer whose call gave `output`, where that is certain once `model` is made."""
    origin = output.origin if isinstance(output, Tensor) else None
    if origin is None or model.call is None or not origin.context.certain_since(model.call.context):
        return None
    return origin.receiver.call if isinstance(origin.receiver, Produced) else None


def _last_layer(model: Model, program: Program) -> Call | None:
    """Return the layer that gives the only result, also where a loop leaves the number of others open."""
    layers = [call for call in model.layers if not call.callee.endswith((".Input", ".InputLayer"))]
    if model.complete:
        return layers[-1] if layers else None
    if model.call is None:
        return None
    if model.kind == "functional":
        return _layer_of(model.call.argument("outputs"), model)
    added = [call for call in program.calls_to("keras.Sequential.add") if call.receiver is model]
    if model.kind != "sequential" or not added or not added[-1].args:
        return None
    last = added[-1].args[0] if added[-1].context.certain_since(model.call.context) else None
    return last.call if isinstance(last, Produced) else None


def _policy(value: Value | None) -> str:
    if isinstance(value, Const):
        return str(value.value)
    if isinstance(value, Produced) and value.callee in POLICIES:
        name = value.call.constant("name", 0)
        return name if isinstance(name, str) else ""
    return ""


def _soft(value: Value | None) -> Severity | None:
    return Severity.INFO if isinstance(value, Const) and value.soft else None


def _activation(layer: Call) -> str:
    """Return the name of the activation that `layer` ends in, "" where it has none or it is not known."""
    if layer.callee == "keras.layers.Softmax":
        return "softmax"
    if layer.callee not in ("keras.layers.Dense", "keras.layers.Activation", "keras.layers.Conv2D"):
        return ""
    value = layer.argument("activation", 0 if layer.callee == "keras.layers.Activation" else None)
    if isinstance(value, Const):
        return str(value.value)
    return value.name.rpartition(".")[2] if isinstance(value, External) else ""
