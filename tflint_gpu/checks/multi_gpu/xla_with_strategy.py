"""TFG804: XLA demanded for a step that a multi-GPU strategy runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.steps import hides_gpus, loudest
from tflint_gpu.findings import Finding, Related
from tflint_gpu.program.context import Region
from tflint_gpu.program.questions import is_true
from tflint_gpu.program.values import GraphFunction, Items, Value
from tflint_gpu.program.views import produced_by

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program

STRATEGIES = ("tf.distribute.MirroredStrategy", "tf.distribute.MultiWorkerMirroredStrategy")
HOROVOD = ("horovod.tensorflow.keras.init", "horovod.tensorflow.init", "horovod.keras.init")

_WHY = "XLA by demand with several replicas hangs, leaks or fails in several versions; drop jit_compile=True here"


class XlaWithStrategy(Check):
    """``jit_compile=True`` together with a mirrored strategy or Horovod."""

    needles: ClassVar[tuple[str, ...]] = ("jit_compile", "experimental_compile")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield explicit XLA around the step of a strategy of several replicas."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._compiled(program), *self._functions(program)))

    def _compiled(self, program: Program) -> Iterator[Finding]:
        horovod = next(program.calls_to(*HOROVOD), None)
        for run in program.runs:
            strategy = _mirrored(run.strategy) or horovod
            if strategy is None or run.model is None:
                continue
            for call in run.model.compiles:
                if is_true(call.argument("jit_compile")):
                    yield self._at(call, strategy)

    def _functions(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("tf.distribute.Strategy.run"):
            strategy = _mirrored(call.receiver)
            if strategy is None:
                continue
            owners = [frame.owner for frame in call.context if isinstance(frame, Region)]
            given = call.argument("fn", 0)
            for function in (*owners, given):
                if isinstance(function, GraphFunction) and function.jit:
                    yield self._at(function.made, strategy)

    def _at(self, call: Call, strategy: Call) -> Finding:
        place = call.place_of("jit_compile")
        return self.at(
            place,
            _WHY,
            qualname=call.qualname,
            related=(Related(strategy.location, "the replicas are set up here"),),
            fix=self.change(
                "drop-arguments", call.location, "drop jit_compile=True", safety="unsafe", names="jit_compile"
            ),
        )


def _mirrored(value: Value | None) -> Call | None:
    """Return the construction of a strategy that may have several replicas; one device named alone has one."""
    call = produced_by(value, *STRATEGIES)
    devices = call.argument("devices", 0) if call and call.callee == STRATEGIES[0] else None
    return None if isinstance(devices, Items) and devices.complete and len(devices.items) < 2 else call
