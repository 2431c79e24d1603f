"""TFG905: several processes that each train on the same GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.environment.gpu_not_visible import MASKS
from tflint_gpu.checks.loops import contains, simulates
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.findings import Finding, Related, Severity
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, Function, Produced, Unknown

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Context, Loop
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program

#: What starts processes: the pool, or the call whose result runs functions, with its argument for how many.
_POOLS = {
    "multiprocessing.Pool": "processes",
    "multiprocessing.pool.Pool": "processes",
    "multiprocessing.get_context().Pool": "processes",
    "torch.multiprocessing.Pool": "processes",
    "multiprocess.Pool": "processes",
    "concurrent.futures.ProcessPoolExecutor": "max_workers",
    "concurrent.futures.process.ProcessPoolExecutor": "max_workers",
}
_PROCESSES = (
    "multiprocessing.Process",
    "multiprocessing.process.Process",
    "multiprocessing.get_context().Process",
    "torch.multiprocessing.Process",
)
_DELAYED = "joblib.delayed"
_PARALLEL = "joblib.Parallel()"

#: Methods of pools that run a function many times; ``apply`` waits for each.
_MANY = ("map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async", "submit", "apply_async")

#: Calls in a worker that choose its device, or make it one of a cluster.
_CHOOSES = ("tf.config.set_visible_devices", "tf.config.experimental.set_visible_devices", "tf.device")
_SHARES = ("set_memory_growth", "LogicalDeviceConfiguration", "VirtualDeviceConfiguration", "GPUOptions")


#: What fits an estimator many times, and what makes a Keras model one.
_SEARCHES = (
    "sklearn.model_selection.GridSearchCV",
    "sklearn.model_selection.RandomizedSearchCV",
    "sklearn.model_selection.cross_val_",
    "sklearn.model_selection.cross_validate",
    "skopt.BayesSearchCV",
)
_WRAPPERS = ("KerasClassifier", "KerasRegressor")


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """A call that hands a function to other processes; `sure` says that more than one surely runs at once."""

    call: Call
    worker: str
    sure: bool


class ManyProcessesOneGpu(Check):
    """Pools, executors and processes whose function trains a model and chooses no GPU of its own."""

    needles: ClassVar[tuple[str, ...]] = ("Process", "Pool", "joblib", "n_jobs")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield what starts the processes, softly where they share the memory by arrangement."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._suspicions(program), *self._searches(program)))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        starts = list(_starts(program))
        trained = [run.call.context if run.call else run.context for run in program.runs]
        trained += [step.apply.context for step in program.steps]
        for start in starts:
            contexts = [context for context in trained if start.worker in _functions(context)]
            if not contexts or start.call.context.debug or _chooses(start.worker, program):
                continue
            arranged = simulates(program) or any(call.callee.endswith(_SHARES) for call in program.calls)
            place = next(frame.function.location for frame in contexts[0].activations if _is(frame, start.worker))
            yield self.at(
                start.call,
                "every process trains on the same GPU: the first takes nearly all its memory, the others fail or "
                "take turns; give each a GPU of its own, or train one after the other",
                severity=None if start.sure and not arranged else Severity.INFO,
                related=(Related(place, "this function trains in each process"),),
            )

    def _searches(self, program: Program) -> Iterator[Finding]:
        """Yield searches of scikit-learn that fit a Keras model in several processes: ``n_jobs=-1``."""
        for call in program.calls_where(lambda name: name.startswith(_SEARCHES)):
            if call.context.debug or "n_jobs" not in call.kwargs:
                continue
            wrapped = any(
                isinstance(part, Produced) and part.callee.rpartition(".")[2] in _WRAPPERS
                for value in (*call.args[:1], call.kwargs.get("estimator"))
                for part in walk(value)
            )
            several = _more_than_one(call.kwargs["n_jobs"], otherwise=None)
            if wrapped and several is not None:
                yield self.at(
                    call,
                    "n_jobs starts several processes that train on the same GPU: the first takes nearly all its "
                    "memory, the others fail or take turns; use n_jobs=1 and larger batches",
                    severity=None if several else Severity.INFO,
                )


def _starts(program: Program) -> Iterator[_Start]:
    """Yield the calls that run a function of the project in several processes at once."""
    starters = program.calls_where(_may_start)
    followed: dict[object, list[str]] = {}
    for call in program.calls_where(lambda name: ":" in name) if starters else ():
        followed.setdefault(call.location, []).append(call.callee)
    for call in starters:
        names = [*followed.get(call.location, ()), *_handed(call)]
        sure = _several(call, program) if names else None
        if sure is not None:
            yield from (_Start(call, name, sure) for name in dict.fromkeys(names))


def _may_start(name: str) -> bool:
    """Say whether what is called `name` may run functions in other processes."""
    pool, _, method = name.rpartition("().")
    return (pool in _POOLS and method in _MANY) or name == _DELAYED or name in _PROCESSES


def _handed(call: Call) -> Iterator[str]:
    """Yield the project functions among the arguments of `call`."""
    for value in (*call.args, *call.kwargs.values()):
        if isinstance(value, Function):
            yield f"{value.module.name}:{value.qualname}"


def _several(call: Call, program: Program) -> bool | None:
    """Say whether `call` starts more than one process at once: surely, maybe (False), or not (None)."""
    pool, _, method = call.callee.rpartition("().")
    if pool in _POOLS and method in _MANY:
        made = call.receiver.call if isinstance(call.receiver, Produced) else None
        if made is None or made.argument("initializer", 1 if "Pool" in pool else 2) is not None:
            return None  # an initializer may choose a GPU for its process
        return _more_than_one(made.argument(_POOLS[pool], 0), otherwise=True)
    if call.callee == _DELAYED:
        return _parallel(call, program)
    if call.callee in _PROCESSES and "target" in call.kwargs:
        return _side_by_side(call, program)
    return None


def _more_than_one(value: Value | None, *, otherwise: bool | None) -> bool | None:
    """Say whether a number of workers is more than one; `otherwise` is what holds without the argument."""
    if value is None:
        return otherwise
    if not isinstance(value, Const):
        return False
    if value.value is None:
        return otherwise
    number = value.value
    return (not value.soft if number != 1 else None) if isinstance(number, int) else False


def _parallel(delayed: Call, program: Program) -> bool | None:
    for outer in program.calls_to(_PARALLEL):
        if not contains(outer.location, delayed.location) or not isinstance(outer.receiver, Produced):
            continue
        made = outer.receiver.call
        threads = made.constant("backend") in ("threading", "sequential") or made.constant("prefer") == "threads"
        return None if threads else _more_than_one(made.argument("n_jobs", 0), otherwise=None)
    return None


def _side_by_side(process: Call, program: Program) -> bool | None:
    """Say whether processes made by one call run at once: in a loop whose rounds do not each wait for theirs."""
    loop = next(iter(process.context.all_loops), None)
    if loop is None:
        return True if _started_together(program) else None
    if loop.count == 1 or _joins(loop, process, program):
        return None
    return True if loop.count is not None else not isinstance(loop.iterable, Unknown)


def _joins(loop: Loop, process: Call, program: Program) -> bool:
    """Say whether a round of `loop` waits for the process that it made."""
    return any(
        loop in call.context.all_loops and isinstance(call.receiver, Produced) and call.receiver.call is process
        for name in _PROCESSES
        for call in program.calls_to(f"{name}().join")
    )


def _started_together(program: Program) -> bool:
    """Say whether another process is made before the first is waited for."""
    made = 0
    for call in program.calls:
        if call.callee in _PROCESSES and not call.context.all_loops and "target" in call.kwargs:
            made += 1
        elif call.callee.endswith("Process().join") and made:
            break
    return made > 1


def _functions(context: Context) -> set[str]:
    return {f"{frame.function.module.name}:{frame.function.qualname}" for frame in context.activations}


def _is(frame: object, worker: str) -> bool:
    function = getattr(frame, "function", None)
    return isinstance(function, Function) and f"{function.module.name}:{function.qualname}" == worker


def _chooses(worker: str, program: Program) -> bool:
    """Say whether the worker picks its own device, hides the GPU, or is a part of one distributed training."""
    chosen = any(
        call.callee in _CHOOSES or call.callee.startswith(("tf.distribute.", "horovod", "tf.config.experimental_"))
        for call in program.calls
        if worker in _functions(call.context)
    )
    masked = any(
        setting.name in (*MASKS, "TF_CONFIG")
        and (worker in _functions(setting.context) or setting.context.all_loops)
        for setting in program.settings
    )
    return chosen or masked
