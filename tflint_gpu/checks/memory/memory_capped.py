"""TFG402: TensorFlow may use only a part of the GPU's memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Measure, Severity, Verdict
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, Items

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

LIMITS = ("tf.config.LogicalDeviceConfiguration", "tf.config.experimental.LogicalDeviceConfiguration")
OPTIONS = "tf.compat.v1.GPUOptions"

#: Calls of programs that run several processes on one card: there a cap is what makes them fit.
_SHARING = (
    "multiprocessing.Process",
    "multiprocessing.Pool",
    "multiprocessing.get_context",
    "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures.process.ProcessPoolExecutor",
    "joblib.Parallel",
    "ray.init",
    "ray.remote",
    "mpi4py.MPI.COMM_WORLD.Get_rank",
    "torch.multiprocessing.spawn",
)

#: A limit of this many bytes is all that many a card has; on a larger one it still holds a large batch.
WHOLE_CARD = 16 * 2**30

#: A peak that leaves this much of the limit free was not held back by it.
_ROOM = 0.8
_FULL = 0.95


class MemoryCapped(Check):
    """A literal cap on GPU memory in a program that trains."""

    needles: ClassVar[tuple[str, ...]] = (
        "LogicalDeviceConfiguration",
        "VirtualDeviceConfiguration",
        "GPUOptions",
        "per_process_gpu_memory_fraction",
    )
    only_on_gpu: ClassVar[str] = "how much of its memory the steps take"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield literal limits; softly where processes share the card, nothing trains, or a flag may change it."""
        yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        shares = any(program.calls_to(*_SHARING))
        for call in program.calls_where({*LIMITS, OPTIONS, "builtins.setattr"}.__contains__):
            cap = _cap(call)
            if cap is None or call.context.debug:
                continue
            text, value, limit = cap
            roomy = isinstance(limit, int) and limit >= WHOLE_CARD
            quiet = shares or roomy or not program.trains() or value.soft or _splits(call, program)
            yield self.at(
                call,
                f"{text}: batches that would keep the GPU busy do not fit, and cuDNN falls back to algorithms "
                "with less workspace; raise or remove the cap unless others share the card",
                severity=Severity.INFO if quiet else None,
                limit=limit,
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Compare the allocator's peak with the limit; NVML's figure says nothing, TensorFlow takes all it may."""
        peak = evidence.facts.get("peak_memory_bytes")
        total = evidence.environment.device.memory_bytes
        limit = finding.detail.get("limit")
        if isinstance(limit, float):
            limit = total * limit if total else None
        if not isinstance(peak, (int, float)) or not limit or evidence.environment.device.kind != "gpu":
            return None
        used = peak / limit
        measures = (Measure("peak_memory", float(peak), "B"), Measure("memory_limit", float(limit), "B"))
        if used < _ROOM:
            return Judgement(Verdict.REFUTED, measures)
        return Judgement(Verdict.CONFIRMED, measures) if used >= _FULL else None


def _cap(call: Call) -> tuple[str, Const, int | float] | None:
    """Return words, value and size of a cap: bytes for a limit, a float below 1 for a fraction of the card."""
    if call.callee in LIMITS:
        value = call.argument("memory_limit", 0)
        if isinstance(value, Const) and isinstance(value.value, (int, float)) and value.value > 0:
            return f"memory_limit={value.value:g} MB caps this GPU", value, int(value.value * 2**20)
    if call.callee == OPTIONS:
        return _fraction(call.argument("per_process_gpu_memory_fraction"))
    if call.callee == "builtins.setattr" and _sets(call, "per_process_gpu_memory_fraction"):
        return _fraction(call.args[1])
    return None


def _sets(call: Call, name: str) -> bool:
    """Say whether an assignment sets the attribute `name`, however deep: ``config.gpu_options.name = …``."""
    dotted = call.constant("name", 0)
    return isinstance(dotted, str) and dotted.rpartition(".")[2] == name


def _fraction(value: Value | None) -> tuple[str, Const, float] | None:
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and 0 < value.value < 0.9:
        words = f"{value.value:.0%} of the GPU's memory is all that TensorFlow may use"
        return words, value, float(value.value)
    return None


def _splits(call: Call, program: Program) -> bool:
    """Say whether the card is cut into several logical ones: a way to try distribution on one GPU."""
    for setup in program.calls_to("tf.config.set_logical_device_configuration"):
        parts = setup.argument("logical_devices", 1)
        if isinstance(parts, Items) and len(parts.items) > 1 and _made_by(parts, call):
            return True
    return False


def _made_by(parts: Value, call: Call) -> bool:
    return any(getattr(part, "call", None) is call for part in walk(parts))
