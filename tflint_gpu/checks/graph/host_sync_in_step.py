"""TFG604: Python reads a tensor in every step, so host and GPU take turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import (
    drives_environment,
    in_every_round,
    is_tensor,
    outermost_per_line,
    shows_tensor,
    simulates,
    step_loops,
)
from tflint_gpu.checks.steps import in_training_step
from tflint_gpu.checks.verdicts import weigh
from tflint_gpu.findings import Finding, Measure, Related, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Loop
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Items, Mapping, Tensor, Value

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_NUMBERS = ("builtins.float", "builtins.int", "builtins.round")
_TEXTS = ("builtins.print", "builtins.str", "builtins.repr", "tf.print", "absl.logging.info", "logging.info")
_WRITERS = ("scalar", "histogram", "image", "audio", "text", "write")
_LOGGERS = ("wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "comet_ml.Experiment().log_metric")
_PROGRESS = (".set_postfix", ".set_description", ".set_postfix_str", ".set_description_str")


class HostSyncInStep(Check):
    """Reports reads of tensors that surely happen in every round of a training loop."""

    needles = ("GradientTape", "minimize(")
    only_on_gpu: ClassVar[str] = "how long it idles after each copy to the host"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a statement."""
        if not program.target.on_tensorflow:
            return
        for loop in step_loops(program):
            severity = Severity.INFO if simulates(program) or drives_environment(loop) else self.severity
            related = (Related(loop.location, "in every round of this loop"),)
            surely = [call for call in loop.calls if _sync(call) and _surely(call, loop)]
            syncs = {id(call): _sync(call) for call in _first_tests(surely)}
            for call in outermost_per_line(call for call in loop.calls if id(call) in syncs):
                yield self.at(
                    call,
                    f"{syncs[id(call)]} waits for the GPU in every step, then the GPU waits for Python. "
                    "Keep the tensor; read it every 100 steps or once an epoch.",
                    severity=severity,
                    related=related,
                    fix=self.change(
                        "every-nth-round",
                        call.location,
                        "do it every 100 rounds",
                        safety="unsafe",
                        places=(loop.location,),
                        rounds="100",
                    ),
                )

        yield from self._summaries(program)

    def _summaries(self, program: Program) -> Iterator[Finding]:
        """Yield summaries that a compiled step writes every time it runs; ``record_if`` may make them rare."""
        if any(program.calls_to("tf.summary.record_if", "tf.summary.should_record_summaries")):
            return
        for name in _WRITERS:
            for call in program.calls_to(f"tf.summary.{name}"):
                if call.context.in_graph and not call.context.all_guards and in_training_step(call, program):
                    yield self.at(
                        call,
                        "This summary copies its data to the host in every step, and the GPU waits for it. "
                        "Write it every few hundred steps, under tf.summary.record_if.",
                        severity=Severity.INFO if name == "scalar" else self.severity,
                    )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the copies to the host in each step and by what the GPU idles outside input wait.

        Nothing is concluded without a traced GPU: on a CPU reading a tensor costs nothing.
        """
        busy, copies = evidence.gpu_busy_share, evidence.copies
        if busy is None or copies is None:
            return None
        count = Measure("device_to_host_copies_per_step", round(copies.device_to_host_count, 2))
        if copies.device_to_host_count < 1:
            return Judgement(Verdict.REFUTED, (count,))
        idle = 1.0 - busy - (evidence.share("input_wait") or 0.0)
        return weigh(max(0.0, idle), "idle_share", "trace: GPU idle outside input wait", count)


def _first_tests(calls: list[Call]) -> Iterator[Call]:
    """Yield `calls` but the branches on a tensor that an earlier branch has waited for already."""
    seen: set[int] = set()
    for call in calls:
        if call.callee == "builtins.bool":
            roots = {root for part in walk(call.args[0]) if (root := _root(part)) is not None}
            if roots and roots <= seen:
                continue
            seen |= roots
        yield call


def _root(value: Value) -> int | None:
    """Return what tells one tensor that the device computes from another; None for what Python makes of others."""
    if not isinstance(value, Tensor):
        return None
    if value.operator == "variable":
        return id(value.parents[0])  # the optimizer that keeps it
    return id(value) if value.origin is not None else None


def _surely(call: Call, loop: Loop) -> bool:
    return not call.context.debug and in_every_round(call, loop)


def _sync(call: Call) -> str | None:
    """Say in words how `call` reads a tensor on the host; None where it does not."""
    name, first = call.callee, call.args[0] if call.args else None
    if name in ("tf.Tensor.numpy", "tf.Variable.numpy", "tf.Tensor.item"):
        # What a dataset yields lies in host memory: reading it waits for nothing.
        known = name == "tf.Variable.numpy" or is_tensor(call.receiver)
        return f".{name.rpartition('.')[2]}() of a tensor" if known else None
    if name in _NUMBERS:
        return f"{name.rpartition('.')[2]}() of a tensor" if is_tensor(first) else None
    if name == "builtins.bool":
        return "Branching on a tensor" if is_tensor(first) else None
    if name in _TEXTS:
        return "Printing a tensor" if any(shows_tensor(value) for value in call.args) else None
    if name.startswith("numpy."):
        return f"np.{name.removeprefix('numpy.')}() of a tensor" if is_tensor(first) else None
    if name.startswith("tf.summary.") and name.rpartition(".")[2] in _WRITERS:
        return "Writing a summary" if any(is_tensor(value) for value in _given(call)) else None
    if name in _LOGGERS or name.endswith(_PROGRESS):
        return "Logging a tensor" if any(_holds(value) for value in _given(call)) else None
    return None


def _given(call: Call) -> tuple[Value, ...]:
    return (*call.args, *call.kwargs.values())


def _holds(value: Value) -> bool:
    if isinstance(value, Mapping):
        return any(shows_tensor(item) for item in value.items.values())
    if isinstance(value, Items):
        return any(shows_tensor(item) for item in value.items)
    return shows_tensor(value)
