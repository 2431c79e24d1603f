"""TFG805: GPUs that the program can see and that have nothing to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.environment.gpu_not_visible import MASKS, reaches_training, runs_here
from tflint_gpu.checks.gpus import computing
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Measure, Verdict
from tflint_gpu.program.values import Const, Items, Subscript
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Scope
    from tflint_gpu.program.views import Program, Setting
    from tflint_gpu.trace.evidence import Evidence

#: A GPU that is busy for less than this of the step has room of its own; that comes first.
USED = 0.60

_INDICES = re.compile(r"\s*\d+(\s*,\s*\d+)*\s*\Z")
_GPU = re.compile(r"gpu:(\d+)", re.IGNORECASE)

#: Packages and calls that put work on several GPUs, or run one process on each.
_PACKAGES = frozenset({"horovod", "byteps", "mpi4py", "ray", "deepspeed", "mesh_tensorflow", "dtensor"})
_SPREADS = ("tf.distribute.", "keras.distribution.", "keras.utils.multi_gpu_model", "tf.experimental.dtensor.")
_PROCESSES = (
    *(
        "multiprocessing.Process",
        "multiprocessing.Pool",
        "multiprocessing.get_context",
        "multiprocessing.pool.Pool",
    ),
    *(
        "concurrent.futures.ProcessPoolExecutor",
        "concurrent.futures.process.ProcessPoolExecutor",
        "joblib.Parallel",
    ),
)
_HIDERS = ("tf.config.set_visible_devices", "tf.config.experimental.set_visible_devices")


class IdleExtraGpus(Check):
    """Training on one GPU of several that it names, or on a GPU whose number may not be there."""

    needles: ClassVar[tuple[str, ...]] = ("VISIBLE_DEVICES", ".device(", "import device", "set_visible_devices")
    only_on_gpu: ClassVar[str] = "which of several compute"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield masks of several GPUs of which one is used, and device blocks that name the wrong one."""
        if not program.target.on_tensorflow or hides_gpus(program) or not program.trains() or _spreads(program):
            return
        blocks = _training_blocks(program)
        masks = [setting for setting in program.settings if _mask(setting) and _in_force(setting, program)]
        chosen = any(program.calls_to(*_HIDERS))
        yield from loudest((*self._masks([] if chosen else masks, blocks), *self._blocks(blocks, masks, program)))

    def _masks(self, masks: list[Setting], blocks: list[tuple[Scope, int, Call]]) -> Iterator[Finding]:
        named = {index for _, index, _ in blocks}
        for setting in masks:
            gpus = _mask(setting)
            if len(gpus) > 1 and len(named) < 2:
                yield self.at(
                    setting.location,
                    f"{len(gpus)} GPUs are made visible and training uses one: the others idle, with their memory "
                    "taken; use MirroredStrategy, or name a single GPU",
                    qualname=setting.qualname,
                    gpus=len(gpus),
                )
            elif len(gpus) == 1 and gpus[0] > 0 and not named - {0}:
                yield self.at(
                    setting.location,
                    f"only GPU {gpus[0]} is visible: GPU 0 gets no work, and a machine without a GPU {gpus[0]} "
                    "trains on the CPU; set this outside of the program, or leave it out",
                    qualname=setting.qualname,
                )

    def _blocks(
        self, blocks: list[tuple[Scope, int, Call]], masks: list[Setting], program: Program
    ) -> Iterator[Finding]:
        if len({index for _, index, _ in blocks}) > 1:
            return  # parts of the model on GPUs of their own
        visible = _visible(masks, program)
        for scope, index, call in blocks:
            if visible is not None and index >= visible:
                message = (
                    f"GPU {index} does not exist: of {visible} visible GPU{'s' if visible > 1 else ''} the first "
                    "is /GPU:0, so this fails or, with soft placement, runs on the CPU while the GPU idles"
                )
            elif index > 0 and visible is None:
                message = (
                    f"this pins training to GPU {index}: GPU 0 gets no work, and on a machine without a GPU "
                    f"{index} soft placement puts it on the CPU; let TensorFlow choose, or use a strategy"
                )
            else:
                continue
            yield self.at(scope.location, message, qualname=call.qualname)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Count the GPUs that ran kernels in the traced steps."""
        wanted, used = finding.detail.get("gpus"), len(computing(evidence))
        measures = (Measure("gpus_used", float(used)), Measure("gpus_seen", float(len(evidence.gpus))))
        if not used or not evidence.environment.device.traced:
            return None
        if isinstance(wanted, int):
            if len(evidence.gpus) < 2:
                return None  # this machine has no others
            return Judgement(Verdict.REFUTED if used > 1 else Verdict.CONFIRMED, measures)
        # A block that names a GPU which is not there would have run on the CPU.
        return Judgement(Verdict.REFUTED, measures)

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where a single GPU of several computes, and is well used."""
        used, busy = computing(evidence), evidence.gpu_busy_share
        others = len(evidence.gpus) - 1
        if len(used) != 1 or others < 1 or busy is None or busy < USED or not evidence.saw_steps:
            return
        touched = any(gpu.busy_share for gpu in evidence.gpus if not gpu.computes)
        if touched or used[0].collective_ms or evidence.facts.get("visible_gpus", others + 1) <= 1:
            return
        if (evidence.facts.get("replicas") or 1) > 1:
            return
        yield self.at(
            place_of(evidence),
            f"{used[0].name} is busy for {busy:.0%} of the step and {others} more "
            f"GPU{'s' if others > 1 else ''} did nothing: MirroredStrategy shares the batch among them, or run "
            "several trainings.",
        ).with_verdict(
            Verdict.OBSERVED,
            evidence=(Measure("gpus_used", 1.0), Measure("gpus_seen", float(len(evidence.gpus)))),
        )


def _spreads(program: Program) -> bool:
    """Say whether the program may use several GPUs by a strategy, a library, processes or a session of its own."""
    if any(module.packages & _PACKAGES for module in program.modules):
        return True
    if any(setting.name == "TF_CONFIG" for setting in program.settings):
        return True
    return any(call.callee.startswith(_SPREADS) or call.callee in _PROCESSES for call in program.calls)


def _mask(setting: Setting) -> tuple[int, ...]:
    """Return the GPUs that a literal mask names by index; none for ids, variables and defaults of options."""
    text = literal(setting.value)
    if setting.name not in MASKS or not isinstance(text, (str, int)) or not _INDICES.match(str(text)):
        return ()
    return tuple(int(part) for part in str(text).split(","))


def _in_force(setting: Setting, program: Program) -> bool:
    return runs_here(setting.context, program) and reaches_training(setting.location, program)


def _training_blocks(program: Program) -> list[tuple[Scope, int, Call]]:
    """Return the device blocks around models and training, with the GPU that each names, and a call inside."""
    calls = [run.call for run in program.runs if run.call is not None]
    calls += [step.apply for step in program.steps]
    calls += [model.call for model in program.models if model.trained and model.call is not None]
    found: dict[object, tuple[Scope, int, Call]] = {}
    for call in calls:
        scope = call.context.scope("device")
        index = _index(scope) if scope is not None and not call.context.debug else None
        if scope is not None and index is not None:
            found.setdefault(scope.location, (scope, index, call))
    return list(found.values())


def _index(scope: Scope) -> int | None:
    value = scope.value
    if not isinstance(value, Const) or value.soft or not isinstance(value.value, str):
        return None
    named = _GPU.search(value.value)
    return int(named[1]) if named else None


def _visible(masks: list[Setting], program: Program) -> int | None:
    """Return how many GPUs are visible at most, None where the machine decides."""
    counts = {len(_mask(setting)) for setting in masks}
    for call in program.calls_to(*_HIDERS):
        devices = call.argument("devices", 0)
        if call.context.all_guards or call.constant("device_type", 1) not in ("GPU", None):
            return None
        if isinstance(devices, Items) and devices.complete:
            counts.add(len(devices.items))
        elif isinstance(devices, Subscript) and isinstance(devices.key, Const):
            counts.add(1)
        else:
            return None
    return min(counts, default=None)
