"""TFG401: memory growth that is set too late, on one card of several, or together with a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Fix, Related
from tflint_gpu.program.values import Const, Items, Subscript, Value

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program

GROWTH = "tf.config.experimental.set_memory_growth"
LIMIT = "tf.config.set_logical_device_configuration"

#: Calls that start TensorFlow's runtime, after which the memory of a GPU can no longer be set up.
_STARTERS = frozenset(
    {
        "tf.constant",
        "tf.convert_to_tensor",
        "tf.Variable",
        "tf.zeros",
        "tf.ones",
        "tf.fill",
        "tf.eye",
        "tf.range",
        "tf.matmul",
        "tf.linalg.matmul",
        "tf.random.normal",
        "tf.random.uniform",
        "tf.config.list_logical_devices",
        "tf.test.gpu_device_name",
        "tf.test.is_gpu_available",
        "tf.data.Dataset.from_tensor_slices",
        "tf.data.Dataset.from_tensors",
        "tf.data.Dataset.range",
        "tf.distribute.MirroredStrategy",
        "tf.distribute.MultiWorkerMirroredStrategy",
    }
)

#: Settings with which the calls do not decide, or are not needed.
_OVERRIDES = ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR")

_LISTS = ("tf.config.list_physical_devices", "tf.config.get_visible_devices")


class MemoryGrowthSetup(Check):
    """A `set_memory_growth` that fails, or that does not hold for every card."""

    needles: ClassVar[tuple[str, ...]] = ("set_memory_growth", "allow_growth")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield growth that comes after the runtime has started, for the first card alone, or beside a limit."""
        if not any(setting.name in _OVERRIDES for setting in program.settings):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        growths = list(program.calls_to(GROWTH))
        order = {id(call): index for index, call in enumerate(program.calls if growths else ())}
        starters = [call for call in program.calls_where(_STARTERS.__contains__) if _starts(call)]
        limits = list(program.calls_to(LIMIT))
        alone = list(program.calls_to("tf.config.set_visible_devices"))
        for call in growths:
            if call.constant("enable", 1) is False or call.context.debug:
                continue
            started = next((s for s in starters if _before(s, call) and order[id(s)] < order[id(call)]), None)
            if started is not None:
                yield self.at(
                    call,
                    "memory growth is set after TensorFlow has started, which raises RuntimeError; move it before "
                    "the first op. It helps to share a card, not to keep it busy",
                    related=(Related(started.location, "the runtime starts here"),),
                    fix=self._earlier(call, started),
                )
            elif limit := next((other for other in limits if _same_device(other, call)), None):
                yield self.at(
                    call,
                    "memory growth and a memory limit on one GPU exclude each other, the second call raises; "
                    "keep one of them. Neither keeps a GPU busy",
                    related=(Related(limit.location, "the limit"),),
                    fix="which of the two was meant is not in the code",
                )
            elif _is_first_only(call) and not alone:
                yield self.at(
                    call,
                    "memory growth is set for one GPU only: with a second card TensorFlow refuses to start; "
                    "loop over all of them. It helps to share a card, not to keep it busy",
                    fix=self.change("loop-over", call.location, "loop over all GPUs"),
                )
        yield from self._sessions(program)

    def _earlier(self, call: Call, started: Call) -> Fix | str:
        if started.qualname != call.qualname or started.location.cell != call.location.cell:
            return "the runtime starts in another function or cell"
        return self.change(
            "move-before", call.location, "set it before the runtime starts", places=(started.location,)
        )

    def _sessions(self, program: Program) -> Iterator[Finding]:
        """Options of a TF 1 session count only if that session is the first to touch the GPU."""
        if any(
            program.calls_to(GROWTH, "tf.compat.v1.disable_eager_execution", "tf.compat.v1.disable_v2_behavior")
        ):
            return
        if not program.trains() or not any("compat" in module.source.text for module in program.modules):
            return  # written for TensorFlow 1, where the session is all there is
        for call in program.calls_to("tf.compat.v1.GPUOptions", "builtins.setattr"):
            if _allows_growth(call) and not call.context.debug:
                yield self.at(
                    call,
                    "allow_growth of a TF 1 session is ignored once TensorFlow 2 has touched the GPU; use "
                    "set_memory_growth first. It helps to share a card, not to keep it busy",
                )


def _allows_growth(call: Call) -> bool:
    """Say whether `call` makes session options with ``allow_growth``, or sets it on some."""
    if call.callee == "builtins.setattr":
        return call.constant("name", 0) == "gpu_options.allow_growth" and call.constant("value", 1) is True
    return call.constant("allow_growth") is True


def _starts(call: Call) -> bool:
    """Say whether `call` starts the runtime for certain: not in a branch, a loop that may be empty, or a graph."""
    return not call.context.all_guards and not call.context.region


def _before(starter: Call, growth: Call) -> bool:
    """Say whether `starter` runs first: both stand in one file, and in the same function or the module itself."""
    here = starter.location
    return (
        here.path == growth.location.path
        and starter.qualname in (growth.qualname, "")
        and not growth.context.region
        and (here.cell or 0, here.line) < (growth.location.cell or 0, growth.location.line)
    )


def _device(call: Call) -> Value | None:
    return call.argument("device", 0)


def _same_device(limit: Call, growth: Call) -> bool:
    first, second = _device(limit), _device(growth)
    if first is None or second is None:
        return False
    return first is second or (_index(first) is not None and _index(first) == _index(second))


def _index(device: Value | None) -> int | None:
    """Return n of ``list_physical_devices("GPU")[n]``, None for anything else."""
    if isinstance(device, Subscript) and isinstance(device.key, Const) and isinstance(device.key.value, int):
        made = getattr(device.base, "call", None)
        return device.key.value if made is not None and made.callee in _LISTS else None
    return None


def _is_first_only(call: Call) -> bool:
    """Say whether growth is set for the first card, in no loop over the cards."""
    device = _device(call)
    return _index(device) == 0 and not call.context.loops and not isinstance(device, Items)
