"""TFG109: a cache behind random stages, which replays the first epoch for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.map_functions import is_random, random_layers, spoken
from tflint_gpu.checks.pipelines import DIRECTORY_LOADERS
from tflint_gpu.findings import Finding, Fix, Related, Severity
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Program, TrainingRun

_RANDOM = "cache() keeps what {name} drew in the first epoch: later epochs get the same samples. Cache before it."
_ORDER = "cache() behind shuffle() keeps the first epoch's order for ever. Put cache() before shuffle()."
_LOADER = "cache() keeps the order that {op} shuffled for the first epoch. Add .shuffle() behind cache()."


class CacheAfterRandom(Check):
    """``cache()`` downstream of random augmentation, or of the only shuffle."""

    needles = (".cache(",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every cache of a training pipeline that freezes what should differ between epochs."""
        for run in program.runs:
            if run.pipeline is None or run.pipeline.role != "train":
                continue
            stages = run.pipeline.stages
            for index, stage in run.pipeline.stages_of("cache"):
                if stage.conditional and any(earlier.conditional for earlier in stages[:index]):
                    # Which of the two branches run together is not known.
                    continue
                yield from self._frozen(run, stages, index, program.target)

    def _frozen(
        self, run: TrainingRun, stages: tuple[Stage, ...], index: int, target: Target
    ) -> Iterator[Finding]:
        cache, earlier, later = stages[index], stages[:index], stages[index + 1 :]
        once = _one_epoch(run)
        for stage in earlier:
            drawn = next((call for call in stage.calls if _augments(call, target)), None)
            if stage.op == "map" and drawn is not None:
                severity = Severity.INFO if once or stage.conditional else Severity.ERROR
                message = _RANDOM.format(name=spoken(drawn))
                yield self._at(cache, message, severity, stage, self._above(cache, stage, earlier))
                return
        if once or any(stage.op in ("shuffle", "shuffle_and_repeat") for stage in later):
            return
        for place, stage in enumerate(earlier):
            if stage.op == "shuffle" and literal(stage.call.argument("reshuffle_each_iteration")) is not False:
                # Behind a shuffle, take and skip part the samples anew each epoch: the cache fixes the parts too.
                parts = any(other.op in ("take", "skip", "shard") for other in earlier[place:])
                severity = Severity.INFO if stage.conditional or parts else Severity.WARNING
                yield self._at(cache, _ORDER, severity, stage, self._above(cache, stage, earlier))
                return
            if stage.op in DIRECTORY_LOADERS and literal(stage.call.argument("shuffle")) is not False:
                fix = "the loader shuffles by itself; pass shuffle=False there and shuffle behind the cache"
                yield self._at(cache, _LOADER.format(op=stage.op), Severity.INFO, stage, fix)
                return

    def _above(self, cache: Stage, cause: Stage, earlier: tuple[Stage, ...]) -> Fix | str:
        """Return the fix that puts the cache above what differs, where nothing stands between the two."""
        if cause is not earlier[-1] or cause.conditional or cause.location.path != cache.location.path:
            return f"other stages stand between {cause.op} and cache"
        title = f"cache before {cause.op}"
        return self.change("swap-methods", cache.location, title, safety="unsafe", places=(cause.location,))

    def _at(self, cache: Stage, message: str, severity: Severity, cause: Stage, fix: Fix | str) -> Finding:
        related = (Related(cause.location, "this differs in every epoch"),)
        return self.at(cache.call, message, severity=severity, related=related, fix=fix)


def _augments(call: Call, target: Target) -> bool:
    if not is_random(call, stateless_too=True) or call.context.debug:
        return False
    # In Keras 2 a random layer does nothing until it is told that this is training.
    return not (random_layers(call) and target.legacy_keras and literal(call.argument("training")) is not True)


def _one_epoch(run: TrainingRun) -> bool:
    """Say whether the data is surely drawn once only, so that no cached epoch is ever replayed."""
    if run.call is None or run.context.loops:
        return False
    epochs = run.call.argument("epochs")
    return epochs is None or literal(epochs) == 1
