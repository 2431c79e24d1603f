"""TFG703: the model or its loss computes in 64 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import in_training_step
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Fix, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, External, Tensor, Value

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_POLICIES = {
    "keras.backend.set_floatx": "value",
    "keras.config.set_floatx": "value",
    "keras.mixed_precision.set_global_policy": "policy",
    "keras.mixed_precision.set_policy": "policy",
    "keras.mixed_precision.set_dtype_policy": "policy",
    "keras.config.set_dtype_policy": "policy",
}
_CASTS = {"tf.cast": 1, "tf.convert_to_tensor": 1, "tf.constant": 1, "keras.ops.cast": 1, "keras.backend.cast": 1}
_NAMES = ("tf.float64", "tf.double", "tf.dtypes.float64", "tf.dtypes.double", "numpy.float64", "numpy.double")

#: Work that is known to need the digits: factorisations, solvers, second-order optimizers, inference.
_NEEDS_DIGITS = (
    "tf.linalg.",
    *(f"tensorflow_probability.{part}." for part in ("optimizer", "math", "mcmc", "sts", "glm", "vi", "stats")),
    "tensorflow_probability.positive_semidefinite_kernels.",
    "tensorflow_probability.distributions.GaussianProcess",
    "tensorflow_probability.distributions.VariationalGaussianProcess",
    "tensorflow_probability.distributions.StudentTProcess",
    "tensorflow_probability.distributions.MultivariateNormalTriL",
    "tensorflow_probability.distributions.MultivariateNormalFullCovariance",
    "gpflow.",
    "scipy.optimize.",
    "scipy.integrate.",
    "tf.GradientTape.jacobian",
    "tf.GradientTape.batch_jacobian",
    "tf.hessians",
)

_GRADIENT = "tf.GradientTape.gradient"

#: What `tf.cast` is given that is a count and not data.
_COUNTS = ("tf.shape", "tf.size", "tf.rank", "tf.range")


_BESIDE = "it meets other 64-bit tensors; narrow them together"
_SOFT = "a default that the user may override asks for it"


class Float64Compute(Check):
    """Reports 64-bit policies, layers and casts in what the GPU trains."""

    needles = ("float64", ".double", "'double'", '"double"')
    only_on_gpu: ClassVar[str] = "what 64-bit kernels cost"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield policies, types of layers and variables, casts in the step; 64-bit data is cast by Keras."""
        severity = self._severity(program)
        for callee, name in _POLICIES.items():
            for call in program.calls_to(callee):
                value = call.argument(name, 0)
                if is_float64(value) and not call.context.debug:
                    soft = isinstance(value, Const) and value.soft
                    yield self.at(
                        call,
                        "Every layer now computes in 64 bits, at half the speed of 32 or, on most GPUs, a 32nd. "
                        'Use "float32" unless the digits are needed.',
                        severity=Severity.INFO if soft else severity,
                        fix=_SOFT if soft else self._policy(call, name, program),
                    )
        for model in program.models:
            for layer in model.layers:
                if is_float64(layer.argument("dtype")) and not layer.callee.endswith((".Input", ".InputLayer")):
                    yield self.at(
                        layer,
                        "This layer computes in 64 bits: half the speed of 32 or, on most GPUs, a 32nd, and casts "
                        "around it. Use float32.",
                        severity=severity,
                        fix=self._narrowed(layer, "dtype"),
                    )
        for call in program.calls_to("tf.Variable"):
            if is_float64(call.argument("dtype")) and program.trains() and not call.context.guards:
                yield self.at(
                    call,
                    "This variable and all that is computed from it take 64 bits: half the speed of 32 or, on "
                    "most GPUs, a 32nd. Use float32.",
                    severity=severity,
                    fix=self._narrowed(call, "dtype") if _lone(call) else _BESIDE,
                )
        for callee, position in _CASTS.items():
            for call in program.calls_to(callee):
                if _casts_data(call, position) and in_training_step(call, program):
                    yield self.at(
                        call,
                        "From here on the step computes in 64 bits: half the speed of 32 or, on most GPUs, a "
                        "32nd. Cast to float32.",
                        severity=severity,
                        fix=self._narrowed(call, "dtype", position) if _lone(call) else _BESIDE,
                    )

    def _policy(self, call: Call, name: str, program: Program) -> Fix | str:
        if program.steps:
            return "a step of one's own may take in 64-bit arrays; narrow those first"
        if call.callee.endswith(".set_floatx"):
            return self.change("drop-statement", call.location, "leave Keras at float32", safety="unsafe")
        return self._narrowed(call, name, 0)

    def _narrowed(self, call: Call, argument: str, position: int | None = None) -> Fix:
        return self.change(
            "narrow-dtype", call.place_of(argument, position), "compute in float32", safety="unsafe"
        )

    def _severity(self, program: Program) -> Severity:
        """Lower the voice where the program does numerics that may need the digits."""
        if any(callee.startswith(_NEEDS_DIGITS) for callee in {call.callee for call in program.calls}):
            return Severity.INFO
        if _differentiates_twice(program):
            return Severity.INFO
        return self.severity

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time of 64-bit kernels; a run without a 64-bit op in its step refutes the finding."""
        share = evidence.kernels.float64_share if evidence.kernels else None
        busy = evidence.gpu_busy_share
        if share is not None and busy is not None:
            return weigh(share * busy, "float64_share", "trace: 64-bit kernels")
        typed = [placed for placed in evidence.placements if placed.in_step and placed.dtypes]
        if not typed:
            return None
        wide = sum(placed.count for placed in typed if any("float64" in dtype for dtype in placed.dtypes))
        return Judgement(Verdict.UNMEASURED if wide else Verdict.REFUTED, (Measure("float64_ops", wide),))


def _differentiates_twice(program: Program) -> bool:
    """Say whether a derivative is differentiated again, as differential equations ask for."""
    return any(
        isinstance(part, Tensor) and part.origin is not None and part.origin.callee == _GRADIENT
        for call in program.calls_to(_GRADIENT)
        for part in walk(call.argument("target", 0))
    )


def is_float64(value: Value | None) -> bool:
    """Say whether `value` names the 64-bit floating point type."""
    if isinstance(value, Const):
        return value.value in ("float64", "double")
    return isinstance(value, External) and value.name in _NAMES


def _lone(call: Call) -> bool:
    """Say whether the file has 64-bit types in variables and casts of data alone, so that all narrow together."""
    return not any(
        word in call.module.source.text for word in ("np.float64", "numpy.float64", "astype", "np.double")
    )


def _casts_data(call: Call, position: int) -> bool:
    if not is_float64(call.argument("dtype", position)) or not call.context.in_step or call.context.guards:
        return False
    source = call.args[0] if call.args else None
    if isinstance(source, Const):
        return False
    return not _is_count(source) and not call.context.debug


def _is_count(value: Value | None) -> bool:
    """Say whether `value` is a shape or an index, or computed from nothing else."""
    if not isinstance(value, Tensor):
        return isinstance(value, Const)
    if value.origin is not None:
        return value.origin.callee in _COUNTS
    return bool(value.parents) and all(_is_count(part) for part in value.parents)
