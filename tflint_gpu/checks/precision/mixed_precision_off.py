"""TFG701: a model of large matrix products that is trained in 32 bits only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import inputs_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.precision.half_precision_unsafe import output_layers
from tflint_gpu.checks.steps import hides_gpus
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Change, Finding, Fix, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant, options_of
from tflint_gpu.program.values import External, Value

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Evidence

#: A program that makes one of these calls has thought about precision, whichever way it decided.
_DECISIONS = ("mixed_precision", "set_dtype_policy", "set_floatx", "set_experimental_options", "loss_scale")

#: From this width on convolutions and dense products are large enough for Tensor Cores to matter.
_WIDE = 64
_WIDE_DENSE = 1024

#: A plain network needs this many wide layers before its matrix products can rule the step.
_MANY = 3


class MixedPrecisionOff(Check):
    """Suggests a mixed policy for models that are large by their own literals and have none."""

    needles = ("compile(", "GradientTape", "train_on_batch")
    only_on_gpu: ClassVar[str] = "what its 16-bit units gain"
    experiments = ("mixed-bfloat16", "mixed-float16")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a trained, large model of a program that never touches precision."""
        if _decided(program) or hides_gpus(program):
            return
        trained = [model for model in program.models if model.trained]
        large = [model for model in trained if _is_large(model) and not any(map(_has_dtype, model.layers))]
        for number, model in enumerate(large):
            yield self.at(
                model.compiles[0] if model.compiles else (model.call or model.location),
                "This large model computes in 32 bits: Tensor Cores run its convolutions and products faster "
                'in 16. Try the policy "mixed_bfloat16" and measure.',
                fix="the fix of the first large model is for all" if number else _policy_set(trained, program),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run under a mixed policy, else by how much of the GPU's time matrix products take."""
        if evidence.facts.get("mixed_precision") in (True, "mixed_float16", "mixed_bfloat16"):
            return Judgement(Verdict.REFUTED)
        for change in ("mixed-bfloat16", "mixed-float16", "mixed-precision"):
            if (judged := by_repair(evidence.experiment(change), severity=Severity.WARNING)) is not None:
                return judged
        products = evidence.kernels.gemm_share if evidence.kernels else None
        if evidence.gpu_busy_share is None or products is None:
            return None
        if products * evidence.gpu_busy_share < 0.4:
            # Most of the step is something that 16 bits do not speed up.
            return Judgement(Verdict.MINOR, (Measure("gemm_share", round(products, 4)),))
        return None


def _policy_set(models: list[Model], program: Program) -> Fix | str:
    """Return the fix that sets the policy before all `models` and keeps their outputs in 32 bits."""
    starts: list[Location] = []
    outputs: list[Change] = []
    for model in models:
        made, last = model.call, output_layers(model, program)
        if made is None or not last:
            return "the layer that gives a model's output is not known; it should stay in float32"
        if not model.compiles:
            return "a step of one's own casts its loss by hand"
        if made.qualname or any(layer.qualname for layer in last):
            return "a model is built in a function; set the policy where the program starts"
        starts += [call.location for call in (made, *model.layers, *inputs_of(model, program))]
        outputs += (
            Change("add-argument", layer.location, (("name", "dtype"), ("value", '"float32"'))) for layer in last
        )
    if len({start.path for start in starts}) > 1:
        return "the models are built in several files; set the policy where the program starts"
    first = min(starts, key=lambda start: (start.cell or 0, start.line))
    policy = (("text", '{keras.mixed_precision.set_global_policy}("mixed_bfloat16")'),)
    title = 'set the policy "mixed_bfloat16", keep outputs in float32'
    return Fix("unsafe", title, (Change("insert-statement", first, policy), *dict.fromkeys(outputs)))


def _decided(program: Program) -> bool:
    if any(setting.name == "TF_ENABLE_AUTO_MIXED_PRECISION" for setting in program.settings):
        return True
    callees = {call.callee for call in program.calls}
    return any(word in callee for callee in callees for word in _DECISIONS)


def _has_dtype(layer: Call) -> bool:
    return layer.argument("dtype") is not None and not _is_float32(layer.argument("dtype"))


def _is_float32(value: Value | None) -> bool:
    return constant(value) == "float32" or (isinstance(value, External) and value.name.endswith(".float32"))


def _is_large(model: Model) -> bool:
    """Say whether literals show a network whose step is ruled by wide convolutions or products."""
    if any(layer.callee.startswith("keras.applications.") for layer in model.layers):
        return True
    if model.kind == "application":
        return True
    wide = 0
    for layer in model.layers:
        times = _times(layer, model)
        name = layer.callee.rpartition(".")[2]
        if name in ("Conv2D", "Conv3D", "Conv2DTranspose", "Conv3DTranspose"):
            wide += times * (_width(layer, "filters") >= _WIDE)
        elif name in ("Dense", "EinsumDense"):
            wide += times * (_width(layer, "units") >= _WIDE_DENSE)
        elif name == "MultiHeadAttention":
            wide += times * (_width(layer, "num_heads") * _width(layer, "key_dim", 1) >= _WIDE)
    return wide >= _MANY


def _times(layer: Call, model: Model) -> int:
    """Return how often a loop makes `layer` again for one model; two where the rounds are not known."""
    around = set(map(id, model.call.context)) if model.call else set()
    rounds = (loop for loop in layer.context.loops if id(loop) not in around and not loop.unrolled)
    return math.prod(loop.count if loop.count is not None else 2 for loop in rounds)


def _width(layer: Call, name: str, position: int = 0) -> int:
    """Return the literal width of `layer`, the least of several; 0 where one is not known."""
    widths = [constant(option) for option in options_of(layer.argument(name, position))]
    known = [width for width in widths if isinstance(width, int)]
    return min(known) if known and len(known) == len(widths) else 0
