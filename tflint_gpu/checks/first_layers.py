"""Whether the first layers of a model may as well be applied to its data before they reach it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.checks.pipelines import DIRECTORY_LOADERS
from tflint_gpu.findings import Change, Fix
from tflint_gpu.program.values import Function, Items, Produced
from tflint_gpu.program.views import literal

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Dataset, Stage
    from tflint_gpu.program.views import Model, Program

#: Stages that hand on pairs as pairs.
_KEEP = frozenset({"batch", "shuffle", "prefetch", "cache", "take", "skip", "repeat", "padded_batch", "unbatch"})

#: What may be done with a model that no longer takes what it took.
_ONLY = ("keras.Model.compile", "keras.Model.fit", "keras.Model.summary")


def to_map(model: Model, moving: list[Call], program: Program, *, text: bool) -> Fix | str:
    """Return the fix that applies `moving` in ``Dataset.map`` in place of the model, or why it is not made.

    `text` says that the layers turn text into numbers; others augment, and have to be told that this is training.
    """
    if model.kind != "sequential" or model.call is None or not model.complete:
        return "only layers listed in a sequential model are moved"
    listed = model.call.argument("layers", 0)
    items = listed.items if isinstance(listed, Items) else ()
    made = [item.call if isinstance(item, Produced) else None for item in items]
    ahead = made.index(moving[0]) if moving[0] in made else len(made)
    if ahead > 1 or made[ahead : ahead + len(moving)] != moving or model.layers[: len(moving)] != moving:
        return "other layers come before them"
    if any(name in layer.kwargs for layer in moving for name in ("input_shape", "batch_input_shape")):
        return "the first of them tells the model its input"
    runs = [run for run in program.runs if run.model is model]
    uses = [call for call in program.calls if call.receiver is model and call.callee not in _ONLY]
    if uses or len(runs) != 1 or runs[0].kind != "fit" or runs[0].call is None:
        return "the model is used in other places, which would have to apply the layers too"
    if runs[0].pipeline is None or not _of_pairs(runs[0].pipeline.dataset):
        return "the data are not known to be pairs in a dataset"
    if (model.call.location.path, model.call.location.cell) != (runs[0].location.path, runs[0].location.cell):
        return "the model is built in one file or cell and trained in another"
    # An input of text goes with the layer that reads it; one of pictures is still what comes.
    parameters = (
        ("end", str(ahead + len(moving))),
        ("first", "0" if text else str(ahead)),
        ("inputs", str(ahead) if text else "0"),
        *([] if text else [("options", ", training=True")]),
    )
    change = Change("layers-to-map", model.call.location, parameters, (runs[0].call.location,))
    return Fix("unsafe", "apply the layers in Dataset.map", (change,))


def _of_pairs(dataset: Dataset) -> bool:
    """Say whether the elements of `dataset` are surely pairs."""
    source = dataset.source
    if source.op in DIRECTORY_LOADERS:
        pairs = source.call.argument("labels") is None and literal(source.call.argument("label_mode")) is None
    else:
        given = source.call.argument("tensors", 0)
        pairs = source.op == "from_tensor_slices" and isinstance(given, Items) and len(given.items) == 2
    for stage in dataset.stages[1:]:
        pairs = _gives_pair(stage) if stage.op == "map" else pairs and stage.op in _KEEP
    return pairs


def _gives_pair(stage: Stage) -> bool:
    """Say whether the function of a map returns a pair, as its text shows."""
    node = stage.function.node if isinstance(stage.function, Function) else None
    if isinstance(node, ast.Lambda):
        return isinstance(node.body, ast.Tuple) and len(node.body.elts) == 2
    last = node.body[-1] if isinstance(node, ast.FunctionDef) else None
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple) and len(last.value.elts) == 2
