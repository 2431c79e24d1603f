"""TFG904: instruments for debugging that were left on in training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.environment.per_batch_callback_work import profiles_long
from tflint_gpu.checks.steps import in_training_step
from tflint_gpu.checks.verdicts import share_of_step, weigh
from tflint_gpu.findings import Finding, Fix, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program, Setting
    from tflint_gpu.trace.evidence import Evidence

_PLACEMENT = ("tf.debugging.set_log_device_placement", "tf.config.experimental.set_log_device_placement")
_NUMERICS = "tf.debugging.enable_check_numerics"
_DUMPS = "tf.debugging.experimental.enable_dump_debug_info"

#: Assertions about values: computed on the device, read by the host. Those about shapes and types are free.
_VALUE_ASSERTIONS = tuple(
    f"tf.debugging.{name}"
    for name in (
        "Assert",
        "assert_equal",
        "assert_none_equal",
        "assert_less",
        "assert_less_equal",
        "assert_greater",
        "assert_greater_equal",
        "assert_positive",
        "assert_negative",
        "assert_non_negative",
        "assert_non_positive",
        "assert_near",
        "assert_all_finite",
        "check_numerics",
    )
)

#: A module and a level above 0, as in ``executor=2``: level 0 switches logging off, a bare number is ignored.
_LOGS = re.compile(r"=\s*[1-9]")


_SOFT = "a default that the user may override switches it on"


class DebugInstrumentationOn(Check):
    """Reports placement logs, numeric checks, dumps, prints and profilers that run in every step."""

    needles = (
        "log_device_placement",
        "tf.debugging",
        "debugging",
        "tf.print",
        "CUDA_LAUNCH_BLOCKING",
        "TF_CPP_VMODULE",
        "xla_dump_to",
        "profile_batch",
        "profiler",
        "check_numerics",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield what is on without a branch that could leave it off; nothing where nothing is trained."""
        if not program.trains():
            return
        yield from self._switches(program)
        yield from self._settings(program)
        yield from self._in_step(program)
        for call in program.calls_to("keras.callbacks.TensorBoard"):
            if profiles_long(call) and not call.constant("histogram_freq"):
                yield self.at(
                    call,
                    "More than a hundred batches are profiled: every kernel is recorded and the host falls "
                    "behind. Ten batches tell the same.",
                )
        starts = [call for call in program.calls_to("tf.profiler.experimental.start") if _sure(call.context)]
        if starts and not any(program.calls_to("tf.profiler.experimental.stop")):
            yield self.at(
                starts[0],
                "The profiler is started and never stopped: every kernel of the whole run is recorded. "
                "Stop it after a few steps.",
            )

    def _switches(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_PLACEMENT):
            value = call.argument("enabled", 0)
            if isinstance(value, Const) and value.value is True and _sure(call.context):
                yield self.at(
                    call,
                    "Every eager op and every new graph now prints its device, and the GPU waits for the console. "
                    "Remove it after the check.",
                    severity=Severity.INFO if value.soft else self.severity,
                    fix=_SOFT if value.soft else self._drop(call.location),
                    prints="every eager op",
                )
        for call in program.calls_to(_NUMERICS, _DUMPS):
            if _sure(call.context):
                yield self.at(
                    call,
                    "Every tensor of every step is now checked or dumped on the host, and the GPU waits for it. "
                    "Remove it after debugging.",
                    fix=self._drop(call.location),
                )

    def _drop(self, place: Location, *, safety: str = "safe") -> Fix:
        return self.change("drop-statement", place, "remove the line", safety=safety)

    def _settings(self, program: Program) -> Iterator[Finding]:
        for setting in program.settings:
            value = setting.value
            if not isinstance(value, Const) or not _sure(setting.context):
                continue
            message = _of_setting(setting.name, str(value.value))
            if message:
                yield self.at(
                    setting.location,
                    message,
                    severity=Severity.INFO if value.soft else self.severity,
                    qualname=setting.qualname,
                    fix=self._unset(setting),
                )

    def _unset(self, setting: Setting) -> Fix | str:
        value = constant(setting.value)
        if isinstance(setting.value, Const) and setting.value.soft:
            return _SOFT
        if setting.name.endswith("XLA_FLAGS") and len(str(value).split()) > 1:
            return "the variable holds other flags too; take --xla_dump_to out by hand"
        return self._drop(setting.location)

    def _in_step(self, program: Program) -> Iterator[Finding]:
        if not program.target.on_tensorflow:
            return
        for call in program.calls_to("tf.print"):
            if _in_traced_step(call, program):
                yield self.at(
                    call,
                    "tf.print copies its tensors to the host in every step and keeps XLA off. Remove it, or print "
                    "every few hundred steps.",
                    fix=self._drop(call.location, safety="unsafe"),
                )
        for call in program.calls_to(*_VALUE_ASSERTIONS):
            if _in_traced_step(call, program):
                yield self.at(
                    call,
                    "This assertion is evaluated and read by the host in every step. Check the data once, outside "
                    "the step, instead.",
                    severity=Severity.INFO,
                    fix="whether the data can be trusted without the assertion is not in the code",
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge what has an op of its own in the step by that op's time; switches leave no such mark.

        Of the placement log only the lines are known: one for each op that Python runs by itself.
        """
        if finding.detail.get("prints") and evidence.eager is not None:
            lines = Measure("log_lines_per_step", round(evidence.eager.ops_per_step, 1))
            return Judgement(Verdict.UNMEASURED, (lines,), reason="what a line costs depends on the console")
        placed = [op for op in evidence.placements if op.in_step and op.ms and touches(op.spot, finding.location)]
        share = share_of_step(sum(op.ms or 0.0 for op in placed), evidence) if placed else None
        return None if share is None else weigh(share, "op_share", "trace: time of these ops")


def _sure(context: Context) -> bool:
    return not context.all_guards


def _in_traced_step(call: Call, program: Program) -> bool:
    traced = call.context.in_graph and call.context.in_step and not call.context.all_guards
    return traced and in_training_step(call, program)


def _of_setting(name: str, value: str) -> str | None:
    if name == "CUDA_LAUNCH_BLOCKING" and value not in ("", "0"):
        return "CUDA_LAUNCH_BLOCKING makes the host wait for every kernel, so that nothing overlaps. Remove it."
    if name == "TF_CPP_VMODULE" and _LOGS.search(value):
        return "TF_CPP_VMODULE writes a log line for ops in every step, and the GPU waits for it. Remove it."
    if name in ("XLA_FLAGS", "TF_XLA_FLAGS") and "--xla_dump_to" in value:
        return "Every compiled graph is dumped to disk, which makes compilation wait. Remove --xla_dump_to."
    return None
