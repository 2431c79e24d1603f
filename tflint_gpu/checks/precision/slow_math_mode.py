"""TFG704: a setting that makes the GPU's mathematics slower for reproducibility."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.checks.verdicts import MINOR_SHARE
from tflint_gpu.findings import Finding, Measure, Severity, Verdict
from tflint_gpu.program.values import Const

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_DETERMINISM = (
    "slower deterministic kernels only, and Keras leaves XLA off: drop it outside of studies that need it"
)

#: Environment variables, the values that slow the GPU down, and what they do.
SETTINGS = {
    "TF_DETERMINISTIC_OPS": (("1", "true"), _DETERMINISM),
    "TF_CUDNN_DETERMINISTIC": (("1", "true"), "cuDNN may use its slower deterministic algorithms only: drop it"),
    "TF_CUDNN_USE_AUTOTUNE": (
        ("0", "false"),
        "cuDNN takes the first algorithm instead of the fastest one: drop it",
    ),
    "NVIDIA_TF32_OVERRIDE": (("0",), "float32 matmuls and convolutions keep off the Tensor Cores: drop it"),
}

DETERMINISM = "tf.config.experimental.enable_op_determinism"
TF32 = "tf.config.experimental.enable_tensor_float_32_execution"


#: Settings that slow down matrix products and convolutions, and no other kernel.
_PRODUCTS_ONLY = ("TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "NVIDIA_TF32_OVERRIDE", TF32)


class SlowMathMode(Check):
    """Determinism, no autotuning, or no TF32, switched on for good."""

    needles: ClassVar[tuple[str, ...]] = (
        *SETTINGS,
        "enable_op_determinism",
        "enable_tensor_float_32_execution",
    )
    only_on_gpu: ClassVar[str] = "what its faster kernels would gain"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield such settings; behind a switch they are `info`, behind a debug switch they are fine."""
        if not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        for setting in program.settings:
            values, effect = SETTINGS.get(setting.name, ((), ""))
            value = setting.value
            if not isinstance(value, Const) or str(value.value).lower() not in values or setting.context.debug:
                continue
            message = f"{setting.name}={value.value}: {effect}"
            yield self.at(
                setting.location,
                message,
                severity=_quieter(setting.context, value),
                qualname=setting.qualname,
                setting=setting.name,
            )
        for call in program.calls_to(DETERMINISM):
            if not call.context.debug:
                yield self.at(
                    call,
                    f"op determinism allows {_DETERMINISM}",
                    severity=_quieter(call.context, None),
                    setting=DETERMINISM,
                )
        for call in program.calls_to(TF32):
            if call.constant("enabled", 0) is False and not call.context.debug:
                yield self.at(
                    call,
                    "without TF32, float32 matmuls and convolutions keep off the Tensor Cores; leave it on "
                    "unless the result needs all 23 bits",
                    severity=_quieter(call.context, call.argument("enabled", 0)),
                    setting=TF32,
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge settings of products and convolutions by the share of the step that these take on a GPU.

        That is the most that faster kernels could gain; what they do gain takes a run without the setting.
        """
        busy, products = evidence.gpu_busy_share, evidence.kernels.gemm_share if evidence.kernels else None
        if busy is None:
            return None
        reason = "what faster kernels gain takes a run without the setting: compare the steps of both"
        if products is None or finding.detail.get("setting") not in _PRODUCTS_ONLY:
            return Judgement(Verdict.UNMEASURED, reason=reason)
        figure = (Measure("product_share", round(products * busy, 4)),)
        if products * busy < MINOR_SHARE:
            return Judgement(Verdict.MINOR, figure)
        return Judgement(Verdict.UNMEASURED, figure, reason=reason)


def _quieter(context: Context, value: object) -> Severity | None:
    """Return `info` where a switch that the code does not show decides."""
    soft = isinstance(value, Const) and value.soft
    return Severity.INFO if soft or any(guard.kind == "branch" for guard in context.all_guards) else None
