"""TFG702: matrix products that leave the Tensor Cores out, by their kernels or by their odd sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import INPUTS, near
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.checks.verdicts import MINOR_SHARE, place_of
from tflint_gpu.findings import Finding, Measure, Related, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const, Produced, Tensor
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.views import Model, Program
    from tflint_gpu.trace.evidence import Device, Evidence

_POLICIES = (
    "keras.mixed_precision.set_global_policy",
    "keras.mixed_precision.set_dtype_policy",
    "keras.mixed_precision.set_policy",
    "keras.config.set_dtype_policy",
)

#: Arguments that become a dimension of a matrix product, by the layer that takes them.
_SIZES = {
    "Dense": "units",
    "Conv1D": "filters",
    "Conv2D": "filters",
    "Conv3D": "filters",
    "Conv2DTranspose": "filters",
    "LSTM": "units",
    "GRU": "units",
    "Embedding": "output_dim",
    "MultiHeadAttention": "key_dim",
}

#: Sizes that 16-bit Tensor Core kernels like are multiples of this; half of it still loads in one piece.
_MULTIPLE = 8

#: Smaller products are launch and memory, whatever their size is a multiple of.
_SMALL = 32

#: Products that take less of the GPU's time than this are not what it waits for (the figure of XProf and DLProf).
_ELIGIBLE = 0.3

#: A share of Tensor Core kernels below this is none.
_NONE = 0.01

#: The first GPUs with Tensor Cores.
_VOLTA = 7.0


class TensorCoresIdle(Check):
    """Widths that are no multiple of 8 under a 16-bit policy; products of a trace without a Tensor Core kernel."""

    needles: ClassVar[tuple[str, ...]] = ("mixed_float16", "mixed_bfloat16")
    only_on_gpu: ClassVar[str] = "which products use Tensor Cores"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield layers of trained models by their literal width; outputs have one unit a class."""
        policy = next((call for call in program.calls_to(*_POLICIES) if _is_mixed(call)), None)
        if policy is None or policy.context.debug or hides_gpus(program):
            return
        yield from loudest(
            finding
            for model in program.models
            if model.trained
            for layer in _hidden_layers(model)
            for finding in self._width(layer, policy, surely=model.kind in ("sequential", "functional"))
        )

    def _width(self, layer: Call, policy: Call, *, surely: bool) -> Iterator[Finding]:
        """Yield a finding about `layer`; `surely` says that it is known not to be an output."""
        word = _SIZES.get(layer.callee.rpartition(".")[2])
        width = literal(layer.argument(word, 1 if word in ("output_dim", "key_dim") else 0)) if word else None
        if not isinstance(width, int) or width < _SMALL or width % _MULTIPLE == 0:
            return
        better = -(-width // _MULTIPLE) * _MULTIPLE
        yield self.at(
            layer,
            f"{word}={width} is no multiple of 8: in 16 bits the GPU pads this product or leaves its Tensor Cores "
            f"idle; try {better}",
            severity=Severity.INFO if surely and width % (_MULTIPLE // 2) else Severity.HINT,
            related=(Related(policy.location, "the 16-bit policy"),),
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the products that ran without Tensor Cores: none refutes it, few are minor."""
        kernels, busy = evidence.kernels, evidence.gpu_busy_share
        if kernels is None or busy is None or kernels.gemm_share is None or kernels.tensor_core_share is None:
            return None
        without = max(0.0, kernels.gemm_share - kernels.tensor_core_share) * busy
        figures = (
            Measure("gemm_share", round(kernels.gemm_share, 4)),
            Measure("tensor_core_share", round(kernels.tensor_core_share, 4)),
        )
        if without == 0.0:
            return Judgement(Verdict.REFUTED, figures)
        # Which of several layers a kernel belongs to is not known: a large share proves nothing of this one.
        return Judgement(Verdict.MINOR, figures) if without < MINOR_SHARE else None

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where products rule the GPU's time and none of their kernels uses its Tensor Cores."""
        kernels, busy = evidence.kernels, evidence.gpu_busy_share
        if kernels is None or not busy or kernels.gemm_share is None or kernels.tensor_core_share is None:
            return
        if not _has_tensor_cores(evidence.environment.device):
            return
        if kernels.gemm_share >= _ELIGIBLE and kernels.tensor_core_share < _NONE:
            yield self.at(
                place_of(evidence),
                f"matrix products take {kernels.gemm_share:.0%} of the GPU's time, none of it on Tensor Cores, "
                "which idle: train in 16 bits, with widths that are multiples of 8",
            ).with_verdict(
                Verdict.OBSERVED,
                evidence=(
                    Measure("gemm_share", round(kernels.gemm_share, 4)),
                    Measure("tensor_core_share", round(kernels.tensor_core_share, 4)),
                ),
            )


def _is_mixed(call: Call) -> bool:
    value = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
    if isinstance(value, Produced) and value.callee.endswith("Policy"):
        value = value.call.argument("name", 0)
    return literal(value) in ("mixed_float16", "mixed_bfloat16")


def _hidden_layers(model: Model) -> list[Call]:
    """Return the layers of `model` without its outputs: the last one, those behind `outputs`, classifiers."""
    layers = [layer for layer in model.layers if layer.callee not in INPUTS]
    ends = {id(layer) for layer in layers[-1:]}
    given = model.call.argument("outputs", 1) if model.call and model.kind == "functional" else None
    for part in near(given):
        receiver = part.origin.receiver if isinstance(part, Tensor) and part.origin is not None else None
        if isinstance(receiver, Produced):
            ends.add(id(receiver.call))
    # Softmax and the like stand behind a classifier, not in it.
    if layers and layers[-1].callee.rpartition(".")[2] in ("Activation", "Softmax", "Dropout", "Reshape"):
        ends.update(id(layer) for layer in layers[-2:-1])
    return [layer for layer in layers if id(layer) not in ends and not _classifies(layer)]


def _classifies(layer: Call) -> bool:
    activation = layer.argument("activation")
    return isinstance(activation, Const) and activation.value in ("softmax", "sigmoid")


def _has_tensor_cores(device: Device) -> bool:
    """Say whether a GPU has Tensor Cores by its compute capability; cards named GTX have none."""
    capability = device.compute_capability
    known = capability is not None and re.fullmatch(r"\d+(\.\d+)?", capability) is not None
    return known and float(capability or 0) >= _VOLTA and "GTX" not in device.name
