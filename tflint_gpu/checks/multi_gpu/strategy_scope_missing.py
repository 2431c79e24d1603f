"""TFG802: a distribution strategy that the trained model does not know of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.architecture import inputs_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Fix, Location, Related
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import leaves
from tflint_gpu.program.values import Items, Produced
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program

_SPREADING = (
    "tf.distribute.MirroredStrategy",
    "tf.distribute.MultiWorkerMirroredStrategy",
    "tf.distribute.experimental.MultiWorkerMirroredStrategy",
    "tf.distribute.experimental.CentralStorageStrategy",
)

#: Ways of making a strategy current that need no scope around the model.
_SET_ELSEWHERE = ("tf.distribute.experimental_set_strategy", "tf.distribute.Strategy.__enter__")

#: What keeps variables of its own, which belong to the strategy as well.
_WITH_VARIABLES = ("keras.optimizers.", "keras.metrics.")

#: Ways of running a step on all replicas.
_RUNNERS = (".run", ".experimental_run_v2", ".experimental_run", ".call_for_each_replica")


class StrategyScopeMissing(Check):
    """Reports models that are trained outside the scope of the strategy made for them."""

    needles = ("Strategy(",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield models built outside every scope, and steps of one's own that no strategy runs."""
        if not program.target.on_tensorflow or any(program.calls_to(*_SET_ELSEWHERE)):
            return
        made = [call for call in program.calls_to(*_SPREADING) if not call.context.all_guards]
        trained = [model for model in program.models if model.trained and model.call is not None]
        inside = [model for model in trained if _scoped(model)]
        for model in trained:
            strategy = next((call for call in made if _meant_for(call, model, program)), None)
            if strategy is None or model in inside or any(_near(strategy, other) for other in inside):
                continue
            place = _built(model, strategy)
            yield self.at(
                place,
                "The strategy does not see this model: it is built outside strategy.scope(), so one GPU trains "
                "and the others idle. Build and compile it inside.",
                qualname=model.call.qualname if model.call and place == model.call.location else strategy.qualname,
                related=(Related(strategy.location, "the strategy"),),
                fix=self._under(place, model, strategy, program),
            )
        if inside and made:
            yield from self._steps(program, made)

    def _under(self, place: Location, model: Model, strategy: Call, program: Program) -> Fix | str:
        """Return the fix that moves everything from the first layer to ``compile`` under the scope."""
        if not model.compiles:
            return "the model is not compiled here; move it and its optimizer under the scope"
        needed = [place, *(call.location for call in model.compiles)]
        if model.call is not None and place == model.call.location:
            needed += [call.location for call in (*model.layers, *inputs_of(model, program))]
        needed += [
            value.call.location
            for compiled in model.compiles
            for value in leaves(Items("list", (*compiled.args, *compiled.kwargs.values())))
            if isinstance(value, Produced) and value.callee.startswith(_WITH_VARIABLES)
        ]
        if any((part.path, part.cell) != (place.path, place.cell) for part in (*needed, strategy.location)):
            return "model, optimizer and strategy stand in several files or cells"
        if _position(strategy) >= _place(min(needed)):
            return "parts of the model are made before the strategy"
        return self.change(
            "put-under",
            min(needed),
            "build and compile under strategy.scope()",
            safety="unsafe",
            places=(max(needed), strategy.location),
            head="with @.scope():",
        )

    def _steps(self, program: Program, made: list[Call]) -> Iterator[Finding]:
        """Yield steps over a mirrored model that are called directly: only the first replica computes."""
        if any(call.callee.endswith(_RUNNERS) or not call.callee for call in program.calls):
            return
        for step in program.steps:
            strategy = next((call for call in made if call.location.path == step.tape.path), None)
            if strategy is None or step.loop is None or "train-step" in step.apply.context.regions:
                continue
            yield self.at(
                step.tape,
                "This step is not handed to strategy.run: only the first GPU computes while the others idle. "
                "Call strategy.run(step, args=…) on a distributed dataset.",
                qualname=step.apply.qualname,
                related=(Related(strategy.location, "the strategy"),),
                fix="data, step and loop have to change together",
            )


def _scoped(model: Model) -> bool:
    return model.call is not None and model.call.context.scope("strategy") is not None


def _near(strategy: Call, model: Model) -> bool:
    return model.call is not None and model.call.location.path == strategy.location.path


def _meant_for(strategy: Call, model: Model, program: Program) -> bool:
    """Say whether the strategy is made first, in the code that then trains the model or leads to it."""
    if model.call is None:
        return False
    built = _built(model, strategy)
    if built.path == strategy.location.path and _position(strategy) > _place(built):
        return False
    return any(
        run.model is model and run.location.path == strategy.location.path and _sees(strategy, run.context)
        for run in program.runs
        if _place(run.location) > _position(strategy)
    )


def _built(model: Model, strategy: Call) -> Location:
    """Return where the code that makes the strategy builds `model`: its call of a helper, if it has one.

    The helper is innocent: it is that call that belongs inside the scope.
    """
    assert model.call is not None
    makers = [id(frame) for frame in strategy.context.activations]
    frames = model.call.context.activations
    for index, frame in enumerate(frames):
        outer = [id(other) for other in frames[index + 1 :]]
        if outer == makers and frame.site is not None and frame.site.path == strategy.location.path:
            return frame.site
    return model.call.location


def _sees(strategy: Call, context: Context) -> bool:
    """Say whether code in `context` runs inside the function that makes the strategy, or the module does."""
    makers = [frame.function.node for frame in strategy.context.activations]
    return not makers or any(frame.function.node is makers[0] for frame in context.activations)


def _position(call: Call) -> tuple[int, int]:
    return _place(call.location)


def _place(location: Location) -> tuple[int, int]:
    return (location.cell or 0, location.line)
