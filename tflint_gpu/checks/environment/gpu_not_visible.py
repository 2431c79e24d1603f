"""TFG901: training that cannot see the GPU it is meant for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Location, Measure, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const, Items, Mapping

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

#: What CUDA takes for a device: an index, a GPU's or a MIG slice's id. At the first other word it stops reading.
_DEVICE = re.compile(r"\s*(\d+|GPU-[0-9a-fA-F-]+|MIG-\S+)\s*\Z")

_HIDERS = ("tf.config.set_visible_devices", "tf.config.experimental.set_visible_devices")
_CONFIGS = ("tf.compat.v1.ConfigProto", "tf.ConfigProto")

#: Words in the names of what runs a function in another process.
PROCESSES = ("multiprocessing", "concurrent.", "joblib", "ProcessPool", "Process", "ray.", "loky")

_IMPORT = re.compile(r"^[ \t]*((?:from|import)[ \t]+(?:[^\n(\\]|\([^)]*\)|\\\n)+)", re.MULTILINE)

#: Builds of TensorFlow that have no GPU code.
_CPU_BUILDS = ("tensorflow-cpu", "tf-nightly-cpu", "intel-tensorflow", "tensorflow-cpu-aws", "tensorflow-intel")
_GPU_BUILDS = ("tensorflow", "tensorflow-gpu", "tf-nightly", "tf-nightly-gpu")

#: Words in a requirement file's path that say it is not what training runs on, or is for CPUs on purpose.
_OTHER_USE = re.compile(
    r"cpu|doc|test|lint|(?<![a-z])ci(?![a-z])|serv|infer|deploy|web|app|lambda|mac", re.IGNORECASE
)


class GpuNotVisible(Check):
    """Reports masks that hide every GPU from a training program and packages that cannot use one."""

    needles = ("VISIBLE_DEVICES", "set_visible_devices", "device_count", "fit(", "GradientTape", "train_on_batch")
    only_on_gpu: ClassVar[str] = "that the steps do not run on it"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield masks and packages; nothing where the program trains nothing or chooses at run time."""
        if not program.target.on_tensorflow or not program.trains():
            return
        for setting in program.settings:
            value = setting.value
            if setting.name not in MASKS or not isinstance(value, Const) or not _hides(str(value.value)):
                continue
            if runs_here(setting.context, program) and reaches_training(setting.location, program):
                yield self.at(
                    setting.location,
                    f"{setting.name} = {str(value.value)[:40]!r} hides every GPU from TensorFlow: training runs "
                    "on the CPU. Remove it, or name the GPU's index.",
                    severity=Severity.INFO if value.soft else self.severity,
                    qualname=setting.qualname,
                )
        for call in program.calls_to(*_HIDERS):
            devices = call.argument("devices", 0)
            empty = isinstance(devices, Items) and devices.complete and not devices.items
            if not empty or call.constant("device_type", 1) != "GPU":
                continue
            if runs_here(call.context, program) and reaches_training(call.location, program):
                yield self.at(call, "This hides every GPU from TensorFlow: training runs on the CPU. Remove it.")
        for call in program.calls_to(*_CONFIGS):
            if _counts_no_gpu(call) and runs_here(call.context, program):
                yield self.at(
                    call, "device_count says there is no GPU: the session runs on the CPU. Remove the entry."
                )
        yield from self._packages(program)

    def _packages(self, program: Program) -> Iterator[Finding]:
        # Two files, one for CPUs and one for GPUs, are a choice and no mistake.
        chosen = any(requirement.name in _GPU_BUILDS for requirement in program.requirements)
        for requirement in program.requirements:
            if requirement.marker or _OTHER_USE.search(requirement.location.path):
                continue
            if requirement.name in _CPU_BUILDS and not chosen:
                yield self.at(
                    requirement.location,
                    f"{requirement.name} has no GPU code: training runs on the CPU whatever is installed beside "
                    "it. Use tensorflow[and-cuda].",
                )
            elif requirement.name == "tensorflow-gpu" and _newer_than_package(requirement.specifier):
                yield self.at(
                    requirement.location,
                    "The package tensorflow-gpu ended with 2.11; 2.12 is a shell that fails to install, and "
                    "nothing sees the GPU. Use tensorflow[and-cuda].",
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the device the steps ran on: a machine without a GPU proves nothing."""
        environment = evidence.environment
        if environment.device.kind == "gpu":
            return Judgement(Verdict.REFUTED, (Measure("gpus", environment.device.count),))
        if environment.cuda_build is False or _machine_has_gpu(evidence):
            return Judgement(Verdict.CONFIRMED, (Measure("gpus", 0),))
        return None

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield a run on the CPU of a machine whose driver shows a GPU."""
        if evidence.environment.device.kind == "gpu" or not _machine_has_gpu(evidence):
            return
        why = (
            "this TensorFlow is built without CUDA" if evidence.environment.cuda_build is False else "it is hidden"
        )
        found = self.at(
            place_of(evidence),
            f"This machine has a GPU and the steps ran on the CPU: {why}, or its libraries do not load. "
            "Run `tflint-gpu doctor`.",
        )
        yield found.with_verdict(Verdict.OBSERVED, evidence=(Measure("gpus", 0),))


def _hides(mask: str) -> bool:
    """Say whether `mask` leaves no GPU: it is empty, or its first entry is no device."""
    return not _DEVICE.match(mask.split(",")[0])


def runs_here(context: Context, program: Program) -> bool:
    """Say whether the code surely runs in the training process: no branch decides, a plain call leads to it."""
    if context.all_guards or context.region:
        return False
    if not context.activations:
        return True
    entered = context.activations[-1].function
    starters = {call.location for call in program.calls if any(word in call.callee for word in PROCESSES)}
    callers = program.calls_to(f"{entered.module.name}:{entered.qualname}")
    return any(call.location not in starters for call in callers)


def reaches_training(place: Location, program: Program) -> bool:
    """Say whether the file of `place` trains, or is imported (by whichever way) by one that does."""
    trained = {run.location.path for run in program.runs} | {step.tape.path for step in program.steps}
    texts = {module.path: module.source.text for module in program.modules}
    reached, pending = set(trained), list(trained)
    while pending:
        imports = _IMPORT.findall(texts.get(pending.pop(), ""))
        words = {word for line in imports for word in re.split(r"[\s.,()]+", line)}
        new = [path for path in texts if path not in reached and _imported_as(path) in words]
        reached.update(new)
        pending.extend(new)
    return place.path in reached


def _imported_as(path: str) -> str:
    """Return the last part of the name that imports give the module at `path`."""
    pure = PurePosixPath(path)
    return pure.parent.name if pure.stem == "__init__" else pure.stem


def _counts_no_gpu(call: Call) -> bool:
    counts = call.argument("device_count")
    if not isinstance(counts, Mapping):
        return False
    value = counts.items.get("GPU")
    return isinstance(value, Const) and value.value == 0 and not value.soft


def _newer_than_package(specifier: str) -> bool:
    """Say whether the newest version that `specifier` allows is past the last real tensorflow-gpu, 2.11."""
    pins = re.findall(r"(===|==|~=|<=|<)\s*(\d+)\.(\d+)", specifier)
    return all((int(major), int(minor)) >= (2, 12 if sign != "<" else 13) for sign, major, minor in pins)


def _machine_has_gpu(evidence: Evidence) -> bool:
    samples = evidence.samples
    return samples is not None and bool(samples.memory_total_bytes)
