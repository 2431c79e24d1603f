"""TFG501: an op without a GPU kernel in the model, the loss or the step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import compiled, hides_gpus, in_training_step, judge_placement, loudest
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.program.kernels import cpu_only, lacks_kernels
from tflint_gpu.program.values import Tensor

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.kernels import CpuOnlyOp
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: APIs without a GPU kernel that other rules speak of: text, look-ups and decoding (string-layer-in-model), Python
#: functions (python-op-in-model), prints and checks (debug-instrumentation-on); and what is no op of the step.
ELSEWHERE = (
    "tf.strings.",
    "tf.lookup.",
    "tf.as_string",
    "tf.io.",
    "tf.image.decode_",
    "tf.data.",
    "tf.py_function",
    "tf.numpy_function",
    "tf.compat.v1.py_func",
    "tf.print",
    "tf.debugging.",
    "tf.summary.",
)


#: Messages are cut before this length, at a word.
LONGEST = 200


class CpuOnlyOpInStep(Check):
    """A call in every training step that lowers to an op which only the CPU can run."""

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield calls in the training step whose op has no GPU kernel in TensorFlow's own kernel registry."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        version = program.target.tensorflow
        for call in program.calls_where(lambda name: _is_op(name) and lacks_kernels(name, version)):
            op = cpu_only(call.callee, call, version)
            if op is None or not in_training_step(call, program):
                continue
            jit = compiled(call, program)
            if jit == "yes" and op.xla_ok:
                continue
            quiet = (jit == "auto" and op.xla_ok) or _few_numbers(call) or _after_the_model(call)
            severity = Severity.INFO if quiet else None
            yield self.at(call, _message(call.callee, op, jit), severity=severity, ops=tuple(op.ops))

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that the op takes on the CPU in each step."""
        return judge_placement(finding, evidence)


def _is_op(name: str) -> bool:
    return name.startswith(("tf.", "keras.")) and not name.startswith(ELSEWHERE)


#: Functions that draw a handful of class indices: next to nothing is copied.
_SAMPLERS = ("nce_loss", "sampled_softmax_loss", "_candidate_sampler")

#: Suppression of boxes: nearly always what comes after the model, but for proposals in two-stage detectors.
_SUPPRESSES = re.compile(r"non_?max_?suppression", re.IGNORECASE)
_PROPOSES = re.compile(r"propos|roi|rpn|anchor", re.IGNORECASE)


def _after_the_model(call: Call) -> bool:
    """Say whether `call` suppresses boxes in a forward pass that may well be inference's alone."""
    if not _SUPPRESSES.search(call.callee) or {"train-step", "loss", "graph"} & set(call.context.regions):
        return False
    return not _PROPOSES.search(f"{call.qualname} {call.location.path.rpartition('/')[2]}")


def _few_numbers(call: Call) -> bool:
    """Say whether the op works on an index vector: ``tf.random.shuffle(tf.range(n))`` copies next to nothing."""
    if call.callee.endswith(_SAMPLERS):
        return True
    first = call.args[0] if call.args else None
    return isinstance(first, Tensor) and first.origin is not None and first.origin.callee == "tf.range"


def _message(api: str, op: CpuOnlyOp, jit: str) -> str:
    name = api.rpartition(".")[2]
    named = name if name == op.ops[0] else f"{name} ({op.ops[0]})"
    what = f"{named} has no GPU kernel: each step goes to the CPU and back while the GPU waits"
    if jit and op.xla_ok is False:
        by_whom = "jit_compile=True" if jit == "yes" else "Keras 3's automatic XLA"
        what = f"{named} has no GPU kernel, and XLA cannot compile it: {by_whom} fails on it"
    if not op.replacement:
        return what
    message = f"{what}; instead: {op.replacement}"
    return message if len(message) < LONGEST else message[: LONGEST - 2].rpartition(" ")[0] + " …"
