"""TFG153: a host that is busy, or held to a single thread, while the GPU waits for its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.input_costs import judge_input
from tflint_gpu.checks.map_functions import has_work
from tflint_gpu.checks.pipelines import DIRECTORY_LOADERS, all_stages, runs_once
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Impact, Location, Measure, Severity, Verdict
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import Const, Items, Value

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_THREADING = "tf.config.threading.set_{}_op_parallelism_threads"
_INTER = _THREADING.format("inter")
_INTRA = _THREADING.format("intra")
_SESSIONS = ("tf.compat.v1.ConfigProto",)

#: Environment variables that limit the threads of TensorFlow's pools; OMP's hold NumPy and OpenCV in the pipeline.
_VARIABLES = {"TF_NUM_INTEROP_THREADS": "inter", "TF_NUM_INTRAOP_THREADS": "intra", "OMP_NUM_THREADS": "omp"}

#: Threads between ops that leave most cores of a training machine without work. tf.data's maps have a pool of
#: their own: with one thread between and inside ops a batch took as long as with all (measured, TensorFlow 2.21);
#: on one core, or with a private pool of one, twice as long.
FEW_THREADS = 4

#: A CPU busier than this is full, and a GPU less busy than that waits (SageMaker's CPUBottleneck, and half).
FULL = 0.90
IDLE = 0.50

_WORKERS = ("multiprocessing.", "concurrent.futures.ProcessPoolExecutor", "joblib.Parallel")

_MESSAGES = {
    "inter": "{name}={count} leaves {threads} to the ops that run on the host, and the GPU waits for those of its "
    "step. tf.data has threads of its own. Leave the limit out.",
    "intra": "{name}={count} computes each op on the host with {threads}: large ones of the input come late for "
    "the GPU. Leave the limit out.",
    "omp": "OMP_NUM_THREADS={count} holds the Python parts of the pipeline to {threads} while the GPU waits. Set "
    "it for worker processes alone.",
    "pinned": "The process may use {count} core: the pipeline shares it with the step, and the GPU waits. Leave "
    "the affinity to the system.",
}


class HostCpuSaturated(Check):
    """Thread limits in programs with a tf.data pipeline, and a full CPU beside an idle GPU in a trace."""

    needles: ClassVar[tuple[str, ...]] = ("parallelism_threads", *_VARIABLES, "sched_setaffinity")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield thread limits, and a process pinned to one core: loud where tf.data works for training."""
        if program.runs and not hides_gpus(program):
            yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        works = works_on_host(program)
        for name, kind in ((_INTER, "inter"), (_INTRA, "intra")):
            for call in program.calls_to(name):
                short, count = name.rpartition(".")[2], call.argument("num_threads", 0)
                yield from self._limit(call.location, call.context, kind, short, count)
        for call in program.calls_to(*_SESSIONS):
            for kind in ("inter", "intra"):
                name = f"{kind}_op_parallelism_threads"
                yield from self._limit(call.location, call.context, kind, name, call.kwargs.get(name))
        for setting in program.settings:
            kind = _VARIABLES.get(setting.name, "")
            if kind and not (kind == "omp" and (not works or _has_workers(program))):
                yield from self._limit(setting.location, setting.context, kind, setting.name, setting.value)
        for call in program.calls_to("os.sched_setaffinity"):
            cores = call.argument("mask", 1)
            if _one_literal(cores) and not call.context.debug:
                # One of several ways to pin, by a switch, is not known to be the one in use.
                sure = works and not call.context.all_guards
                yield self.at(
                    call,
                    _MESSAGES["pinned"].format(count=1),
                    severity=Severity.WARNING if sure else Severity.INFO,
                )

    def _limit(
        self, place: Location, context: Context, kind: str, name: str, value: Value | None
    ) -> Iterator[Finding]:
        count = _number(value)
        if count is None or not 0 < count <= FEW_THREADS or context.debug or (kind != "inter" and count > 1):
            return
        threads = "a single thread" if count == 1 else f"{count} threads"
        yield self.at(
            place,
            _MESSAGES[kind].format(name=name, count=count, threads=threads),
            severity=Severity.INFO,
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """What all input costs is the bound of what more threads could give back."""
        return judge_input(evidence, 1.0)

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where the allowed cores are full while the GPU is busy less than half of the time."""
        samples, busy = evidence.samples, evidence.gpu_busy_share
        if busy is None and samples is not None:
            busy = samples.gpu_util
        if samples is None or samples.cpu_util is None or busy is None:
            return
        if evidence.environment.device.kind != "gpu" or samples.cpu_util < FULL or busy >= IDLE:
            return
        cores = f"{evidence.environment.cpus} cores" if evidence.environment.cpus else "cores"
        found = self.at(
            place_of(evidence),
            f"The {cores} are {samples.cpu_util:.0%} busy and the GPU {busy:.0%}: the host cannot make input "
            "faster. Cache, prepare offline, work on uint8, or take more cores.",
        )
        waiting = evidence.share("input_wait")
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(Measure("cpu_util", round(samples.cpu_util, 4)), Measure("gpu_busy", round(busy, 4))),
            impact=Impact(round(waiting, 4), "trace: wait for input") if waiting else None,
        )


def works_on_host(program: Program) -> bool:
    """Say whether tf.data does work for the samples of training, in every epoch anew."""
    return any(
        not runs_once(pipeline.dataset, stage)
        and (stage.op in DIRECTORY_LOADERS or (stage.op in ("map", "map_and_batch") and has_work(stage) is True))
        for pipeline in program.pipelines
        if pipeline.role == "train"
        for stage, _ in all_stages(pipeline.dataset)
    )


def _one_literal(cores: Value | None) -> bool:
    """Say whether a set of cores surely has one member: a core that is computed may be each process's own."""
    literal = isinstance(cores, Items) and cores.complete and len(cores.items) == 1
    return literal and isinstance(cores, Items) and isinstance(cores.items[0], Const)


def _has_workers(program: Program) -> bool:
    return any(call.callee.startswith(_WORKERS) for call in program.calls)


def _number(value: Value | None) -> int | None:
    """Return a count given as a number or, in the environment, as its text."""
    given = constant(value)
    if isinstance(given, str) and given.strip().isdigit():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None
