"""TFG116: input through interfaces that newer ones have replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.generators import generator_function, image_flow
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.successors import METHODS, TRANSFORMATIONS, WORKERS
from tflint_gpu.findings import Finding, Fix, Severity
from tflint_gpu.program.history import exists
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Const, Produced

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.target import Target
    from tflint_gpu.program.views import Program

_OLD = "{old} is an old way to feed a GPU that nobody makes faster and a release may remove. Use {new}."
_SESSION = "{old} builds no tf.data and no compiled Keras step: the GPU gets its data from Python. {new}."

#: Calls that have a successor. What comes is what the successor is.
REPLACED = {
    "keras.Model.fit_generator": "fit()",
    "keras.Model.evaluate_generator": "evaluate()",
    "keras.Model.predict_generator": "predict()",
    "tf.data.experimental.map_and_batch": "map(…, tf.data.AUTOTUNE).batch(…): they are fused",
    "tf.data.experimental.parallel_interleave": "interleave(…, num_parallel_calls=tf.data.AUTOTUNE)",
    "tf.data.experimental.shuffle_and_repeat": "shuffle(…).repeat(): they are fused",
    "tf.data.experimental.unbatch": "unbatch()",
    "tf.data.experimental.rejection_resample": "rejection_resample()",
    "tf.data.Dataset.make_one_shot_iterator": "a loop over the dataset",
    "tf.data.Dataset.make_initializable_iterator": "a loop over the dataset",
    "tf.compat.v1.data.make_one_shot_iterator": "a loop over the dataset",
    "tf.compat.v1.data.make_initializable_iterator": "a loop over the dataset",
}

#: Families of TensorFlow 1, by the start of their names. Each is told once a file.
_FAMILIES = {
    "tf.estimator.": "Keras: it left TensorFlow in 2.16",
    "tf.contrib.": "what replaced it: it left TensorFlow in 2.0",
    "tf.compat.v1.train.start_queue_runners": "tf.data",
    "tf.compat.v1.train.string_input_producer": "tf.data",
    "tf.compat.v1.train.slice_input_producer": "tf.data",
    "tf.compat.v1.train.shuffle_batch": "tf.data",
    "tf.compat.v1.train.batch": "tf.data",
    "tf.compat.v1.placeholder": "function arguments",
}

_GRAPH_MODE = ("tf.compat.v1.disable_eager_execution", "tf.compat.v1.disable_v2_behavior")
_IMAGES = "keras.preprocessing.image.ImageDataGenerator"
_GONE = "{argument} left {method}() with Keras 3, where this call fails. Give it to a PyDataset, or drop it."


class LegacyInputApi(Check):
    """Reports generators' own ``fit``, queues, feeds, estimators and tf.data functions that were replaced."""

    needles: ClassVar[tuple[str, ...]] = (
        *("_generator", "ImageDataGenerator", "data.experimental", "_iterator", "feed_dict", "estimator"),
        *("contrib", "input_producer", "queue_runners", "disable_eager", "disable_v2", "compat.v1", *WORKERS),
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield one finding a place, and one a file for whole families; code meant for TensorFlow 1 has none."""
        if program.target.tensorflow >= (2, 0):
            yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        families: set[tuple[str, str]] = set()
        for call in program.calls_where(_is_legacy):
            if call.context.debug:
                continue
            old, new = call.callee.rpartition(".")[2], REPLACED.get(call.callee)
            if new is not None:
                yield self.at(call, _OLD.format(old=f"{old}()", new=new), fix=self._renewed(call, program.target))
            elif call.callee.endswith("Session().run") and "feed_dict" in call.kwargs and call.context.loops:
                yield self.at(call, _SESSION.format(old="feed_dict", new="Use a tf.data pipeline and fit()"))
            else:
                family = next((start for start in _FAMILIES if call.callee.startswith(start)), None)
                if family is not None and (family, call.location.path) not in families:
                    families.add((family, call.location.path))
                    yield self.at(call, _OLD.format(old=call.callee, new=_FAMILIES[family]))
        yield from self._graph_mode(program)
        yield from self._image_generators(program)
        yield from self._arguments(program, program.target)
        yield from self._spellings(program)

    def _graph_mode(self, program: Program) -> Iterator[Finding]:
        uses_keras = any(run.kind == "fit" for run in program.runs) or bool(program.models)
        for call in program.calls_to(*_GRAPH_MODE) if uses_keras else ():
            old = f"{call.callee.rpartition('.')[2]}()"
            yield self.at(call, _SESSION.format(old=old, new="Leave eager execution on"))

    def _image_generators(self, program: Program) -> Iterator[Finding]:
        flows = [flow for run in program.runs for data in options_of(run.data) if (flow := image_flow(data))]
        for call in program.calls_to(_IMAGES):
            # On the same line python-generator-input has said as much already.
            told = any(
                isinstance(flow.receiver, Produced)
                and flow.receiver.call is call
                and flow.location.line == call.location.line
                for flow in flows
            )
            if not told:
                new = "image_dataset_from_directory and random layers"
                yield self.at(call, _OLD.format(old="ImageDataGenerator", new=new))

    def _arguments(self, program: Program, target: Target) -> Iterator[Finding]:
        if target.legacy_keras:
            return
        known = target.stated
        for call in program.calls_to("keras.Model.fit", "keras.Model.evaluate", "keras.Model.predict"):
            method = call.callee.rpartition(".")[2]
            given = next((name for name in WORKERS if name in call.kwargs), None)
            if given is not None and not (method == "fit" and _told_of_workers(call)):
                yield self.at(
                    call.place_of(given),
                    _GONE.format(argument=given, method=method),
                    severity=Severity.INFO if known else Severity.HINT,
                    qualname=call.qualname,
                    fix=self._without_workers(call),
                )

    def _without_workers(self, call: Call) -> Fix:
        names = [name for name in WORKERS if name in call.kwargs]
        return self.change(
            "drop-arguments", call.location, f"drop {', '.join(names)}", safety="unsafe", names=",".join(names)
        )

    def _renewed(self, call: Call, target: Target) -> Fix | str:
        """Return the call by its new name; the same arguments mean the same there, but for those of the queue."""
        old = call.callee.rpartition(".")[2]
        if old in METHODS and target.tensorflow >= (2, 1):
            return self._renamed(call, *METHODS[old], () if target.legacy_keras else WORKERS)
        new = TRANSFORMATIONS.get(call.callee)
        if new is None:
            return "what comes instead is not called in the same way"
        methods, safety = new.methods, new.safety
        if old == "parallel_interleave" and (sloppy := call.argument("sloppy", 3)) is not None:
            if not isinstance(sloppy, Const) or sloppy.soft:
                return "whether order matters is decided elsewhere"
            methods = methods.replace(")", f", deterministic={not sloppy.value})")
        if old == "shuffle_and_repeat" and call.argument("seed", 2) is not None:
            safety = "unsafe"
        return self.change(
            "apply-as-methods",
            call.location,
            "write the methods that do the same",
            safety=safety,
            positions=",".join(new.positions),
            methods=methods,
            gone=",".join(new.gone),
        )

    def _renamed(self, call: Call, name: str, positions: tuple[str, ...], gone: tuple[str, ...]) -> Fix:
        given = [argument for argument in gone if argument in call.kwargs]
        return self.change(
            "rename-call",
            call.location,
            f"call {name}()" + (f", without {', '.join(given)}" if given else ""),
            safety="unsafe" if given else "safe",
            name=name,
            positions=",".join(positions),
            renames="generator:x",
            gone=",".join(gone),
        )

    def _spellings(self, program: Program) -> Iterator[Finding]:
        if not exists(program.target, "tf.data.AUTOTUNE"):
            return
        for call in program.calls_where(lambda name: name.startswith("tf.data.")):
            if call.context.debug:
                continue
            given = [*call.node.args, *(keyword.value for keyword in call.node.keywords)] if call.node else []
            for value in given:
                if _is_old_autotune(value):
                    yield self.at(
                        call.module.location(value),
                        "tf.data.experimental.AUTOTUNE is the old name of what keeps the GPU fed. "
                        "Write tf.data.AUTOTUNE.",
                        severity=Severity.HINT,
                        qualname=call.qualname,
                        fix=self.change(
                            "rewrite",
                            call.module.location(value),
                            "write tf.data.AUTOTUNE",
                            text="{tensorflow.data.AUTOTUNE}",
                        ),
                    )


def _is_legacy(name: str) -> bool:
    """Say whether what is called `name` may be an old way of feeding a model."""
    return name in REPLACED or name.startswith(tuple(_FAMILIES)) or name.endswith("Session().run")


def _told_of_workers(fit: Call) -> bool:
    """Say whether pydataset-few-workers speaks of the arguments of `fit`: all but those of generators do."""
    choices = options_of(fit.argument("x"))
    if not choices or not all(generator_function(data) or image_flow(data) for data in choices):
        return True
    workers = fit.kwargs.get("workers")
    several = isinstance(workers, Const) and isinstance(workers.value, int) and workers.value > 1
    return several and all(generator_function(data) for data in choices)


def _is_old_autotune(text: ast.expr) -> bool:
    return (
        isinstance(text, ast.Attribute)
        and text.attr == "AUTOTUNE"
        and isinstance(text.value, ast.Attribute)
        and text.value.attr == "experimental"
    )
