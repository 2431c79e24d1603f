"""The evidence of one trace: what was measured, in one versioned file that any machine can merge.

Times are milliseconds unless a name says otherwise, shares are 0..1, sizes are bytes. A figure that could not
be measured is None, never 0. `docs/evidence.md` describes the file for other programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.findings import Location
from tflint_gpu.trace.kept import put
from tflint_gpu.trace.spots import Spot as Spot
from tflint_gpu.trace.spots import touches as touches
from tflint_gpu.trace.tried import SAME_WORK
from tflint_gpu.trace.tried import Losses as Losses
from tflint_gpu.trace.tried import VerifiedFix as VerifiedFix
from tflint_gpu.trace.tried import WhatIf as WhatIf
from tflint_gpu.trace.usage import Copies as Copies
from tflint_gpu.trace.usage import GpuUse, HostUse, Memory
from tflint_gpu.trace.usage import Kernels as Kernels
from tflint_gpu.trace.usage import Samples as Samples
from tflint_gpu.trace.usage import straggler as straggler

#: Raised when the meaning of a field changes; new fields alone do not.
SCHEMA = 1

#: What an evidence file may hold, for other programs.
SCHEMA_FILE = Path(__file__).with_name("evidence.schema.json")

#: The parts of a step, in order of precedence where they overlap: the first one wins.
BUCKETS = (
    "device_compute",
    "device_to_host",
    "device_to_device",
    "input_wait",
    "collectives",
    "launch",
    "host_to_device",
    "compile",
    "host",
    "unknown",
)


@dataclass(frozen=True)
class Device:
    """What the steps ran on. `kind` is ``gpu`` or ``cpu``; `traced` says that its work is in the profile."""

    name: str
    kind: str
    traced: bool
    count: int = 1
    memory_bytes: int | None = None
    compute_capability: str | None = None


@dataclass(frozen=True)
class Environment:
    """Versions and machine of the traced run."""

    tensorflow: str | None = None
    keras: str | None = None
    backend: str | None = None
    python: str | None = None
    platform: str | None = None
    cpus: int | None = None
    cuda_build: bool | None = None
    device: Device = field(default_factory=lambda: Device("unknown", "cpu", traced=False))


@dataclass(frozen=True)
class Step:
    """One step of the window: its length and the buckets it is made of, which add up to it."""

    step_ms: float
    gpu_busy_ms: float | None
    kernel_ms: float | None
    buckets: dict[str, float]


@dataclass(frozen=True)
class Window:
    """How the steps were found and how steady they are.

    `seen_as` is ``fit``, ``train_on_batch``, ``dataset loop``, ``step function`` or ``time``. The median and the
    spread (interquartile range over median) are of plain steps outside the profiler, and so is the mean, which
    costs that come every few steps are held against.
    """

    seen_as: str
    warmup_steps: int
    steps: int
    step_ms: float
    spread: float
    spot: Spot | None = None
    batch_size: int | None = None
    note: str = ""
    mean_ms: float | None = None


@dataclass(frozen=True)
class PipelineStage:
    """A stage of a rewritten tf.data iterator chain with its own time per step.

    `chain` is the whole event name (``Iterator::Root::Prefetch::ParallelMapV2``), `op` its last element. `self_ms`
    is time in the stage less its inputs, summed over threads; `spot` the user's line where the op could be mapped.
    """

    chain: str
    op: str
    self_ms: float
    count: int
    spot: Spot | None = None
    pipeline: int = 0


@dataclass(frozen=True)
class PythonInput:
    """Python that makes input: `kind` is ``generator``, ``py_function``, ``numpy_function`` or ``PyDataset``."""

    kind: str
    name: str
    ms_per_step: float
    calls: int
    spot: Spot | None = None


@dataclass(frozen=True)
class TracedFunction:
    """A ``tf.function`` seen in the run: how often it was traced in all, and after warm-up, and how it was called.

    `spot` is the function's definition; `causes` say which argument changed, in the runtime's words or ours.
    `trace_ms` is what all its traces took together, `retrace_ms` what those after warm-up add to a mean step.
    """

    name: str
    traces: int
    retraces_after_warmup: int
    calls: int
    jit: bool = False
    spot: Spot | None = None
    caller: Spot | None = None
    causes: tuple[str, ...] = ()
    trace_ms: float | None = None
    retrace_ms: float | None = None


@dataclass(frozen=True)
class CallbackCost:
    """A Keras callback and the time its batch and epoch methods take."""

    name: str
    ms_per_step: float
    ms_per_epoch: float | None = None
    spot: Spot | None = None


@dataclass(frozen=True)
class KerasCall:
    """Calls of ``fit``/``predict``/``evaluate``/``train_on_batch``/``predict_on_batch`` from one line.

    `rows` is the median number of rows handed over, None where it is not known; `ms` the median time of one call;
    `share` what the calls took of the steps that they were made in, None where they were made outside of steps.
    """

    method: str
    calls: int
    ms: float
    spot: Spot | None
    rows: int | None = None
    inside: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Eager:
    """Ops executed one by one from Python, per step, and the share of the step in which Python runs them.

    The share counts Python from one op to the next where it does nothing else in between.

    `spots` name the user's lines that ran most of them: (spot, ops per step).
    """

    ops_per_step: float
    share: float
    spots: tuple[tuple[Spot, float], ...] = ()


@dataclass(frozen=True)
class Placement:
    """Ops of one type from one line: where they ran, or would run on a GPU machine when `predicted`.

    `device` is ``cpu`` or ``gpu``; `ms` their time per step; `reason` in words (``no GPU kernel for AsString`` …);
    `in_step` says that they belong to the training step, not to input or set-up. `bytes` is what the largest of
    them reads and writes, unknown dimensions counted as one; None where a rank is unknown.
    """

    op: str
    count: int
    device: str
    predicted: bool
    spot: Spot | None
    ms: float | None = None
    dtypes: tuple[str, ...] = ()
    function: str = ""
    reason: str = ""
    in_step: bool = True
    jit: bool = False
    bytes: int | None = None


@dataclass(frozen=True)
class GraphLoop:
    """A loop inside a graph (``while_loop``, ``map_fn``, a recurrent layer); with its gradient, where it has one.

    `body_ops` is how many ops one round runs, `rounds` how many it made per step and `ms` how long, from the first
    op to the last; None where the profile does not show it.
    """

    spot: Spot | None
    body_ops: int
    rounds: float | None = None
    ms: float | None = None
    in_step: bool = True
    jit: bool = False


@dataclass(frozen=True)
class Evidence:
    """What one trace measured."""

    schema: int
    tool: str
    made_at: str
    command: tuple[str, ...]
    environment: Environment
    window: Window | None
    steps: tuple[Step, ...] = ()
    #: blake2b-128 hex of every project file that the run loaded, by relative path.
    sources: dict[str, str] = field(default_factory=dict)
    #: What stands for the lines of these files, by which they are found again after an edit (`trace/follow.py`).
    lines: dict[str, str] = field(default_factory=dict)
    #: Lines that ran, by relative path (notebooks: by ``path#cell``); empty where it could not be recorded.
    executed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    pipelines: tuple[PipelineStage, ...] = ()
    python_input: tuple[PythonInput, ...] = ()
    functions: tuple[TracedFunction, ...] = ()
    callbacks: tuple[CallbackCost, ...] = ()
    keras_calls: tuple[KerasCall, ...] = ()
    eager: Eager | None = None
    placements: tuple[Placement, ...] = ()
    loops: tuple[GraphLoop, ...] = ()
    copies: Copies | None = None
    kernels: Kernels | None = None
    gpus: tuple[GpuUse, ...] = ()
    #: The hosts of a run of several; empty for a single one.
    hosts: tuple[HostUse, ...] = ()
    memory: Memory | None = None
    samples: Samples | None = None
    what_if: tuple[WhatIf, ...] = ()
    verified_fixes: tuple[VerifiedFix, ...] = ()
    muted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    #: Free facts that a judge may want: ``mixed_precision``, ``jit`` of the step, ``parameters`` of the model …
    facts: dict[str, Any] = field(default_factory=dict)
    #: Evidence of further runs, each of which judges for itself.
    others: tuple[Evidence, ...] = ()

    @property
    def step_ms(self) -> float | None:
        """Median step time outside the profiler, None where no steps were seen."""
        return self.window.step_ms if self.window else None

    @property
    def samples_per_second(self) -> float | None:
        """Samples that the median step gets through a second, None where the rows of a batch are not known."""
        rows = self.window.batch_size if self.window else None
        return rows * 1000.0 / self.step_ms if rows and self.step_ms else None

    @property
    def saw_steps(self) -> bool:
        """Whether `steps` are steps, and not one stretch of time in which none was marked."""
        return bool(self.steps) and not (self.window is not None and self.window.seen_as == "time")

    def share(self, bucket: str) -> float | None:
        """Return the mean share of the step that `bucket` takes, None without steps."""
        total = sum(step.step_ms for step in self.steps)
        if not total:
            return None
        return sum(step.buckets.get(bucket, 0.0) for step in self.steps) / total

    @property
    def gpu_busy_share(self) -> float | None:
        """Union of all stream events over step time; None where no GPU was traced."""
        if not self.environment.device.traced or self.environment.device.kind != "gpu":
            return None
        total = sum(step.step_ms for step in self.steps)
        return sum(step.gpu_busy_ms or 0.0 for step in self.steps) / total if total else None

    def busy_share_with(self, result: WhatIf) -> float | None:
        """Return the share of a changed step that the GPU would be busy, from its work in a step as it is.

        None without a traced GPU, and for changes that give the GPU other work.
        """
        busy = self.gpu_busy_share
        if busy is None or result.change not in SAME_WORK:
            return None
        step_ms = sum(step.step_ms for step in self.steps) / len(self.steps)
        return min(1.0, busy * step_ms / result.step_ms)

    def experiment(self, change: str) -> WhatIf | None:
        """Return the what-if result of `change`, None where it was not run."""
        return next((result for result in self.what_if if result.change == change), None)

    def verified(self, code: str, location: Location) -> VerifiedFix | None:
        """Return what became of the fix that the rule `code` has at `location`, None where it was not tried."""
        return next(
            (
                fix
                for fix in self.verified_fixes
                if fix.code == code and any(touches(spot, location) for spot in fix.spots)
            ),
            None,
        )

    def ran(self, location: Location) -> bool | None:
        """Say whether some line of `location` ran; None where that was not recorded for its file."""
        key = location.path if location.cell is None else f"{location.path}#{location.cell}"
        if key not in self.executed:
            return None if not self.executed or location.path not in self.sources else False
        lines = self.executed[key]
        return any(location.line <= line <= location.end_line for line in lines)


def save(evidence: Evidence, path: Path) -> None:
    """Write `evidence` as JSON, as `put` does. Raises `UserError` where it cannot be written."""
    import msgspec

    put(path, msgspec.json.format(msgspec.json.encode(evidence), indent=1) + b"\n")


def load(path: Path) -> Evidence:
    """Read an evidence file; raises `UserError` naming the file where it is absent, torn or of another schema."""
    import msgspec

    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise UserError(f"{path}: cannot read the evidence: {problem.strerror}") from None
    try:
        # The version first: a file of another one need not fit today's types.
        version = msgspec.json.decode(raw, type=_Version).schema
        evidence = msgspec.json.decode(raw, type=Evidence) if version == SCHEMA else None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UserError(
            f"{path}: not an evidence file of tflint-gpu ({problem}); run `tflint-gpu trace` again"
        ) from None
    if evidence is None:
        remedy = "trace again" if version < SCHEMA else "update tflint-gpu here, or trace with this version"
        raise UserError(f"{path}: evidence of schema {version}, and this version reads {SCHEMA}; {remedy}")
    return evidence


@dataclass(frozen=True)
class _Version:
    """What every evidence file has, whatever else is in it."""

    schema: int
