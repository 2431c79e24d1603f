"""Which pipelines hand over batches whose shape changes from one to the next."""

from __future__ import annotations

from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import (
    Attribute,
    Const,
    Dataset,
    Element,
    External,
    Items,
    Mapping,
    Produced,
    Stage,
    Subscript,
    Tensor,
    Value,
)

#: Ops that give their result a fixed shape: after one of them a map has settled the lengths.
_SETTLING = frozenset(
    {
        "tf.pad",
        "tf.reshape",
        "tf.ensure_shape",
        "tf.Tensor.set_shape",
        "tf.image.resize",
        "tf.image.resize_with_pad",
        "tf.image.resize_with_crop_or_pad",
        "keras.utils.pad_sequences",
        "keras.ops.pad",
        "keras.ops.reshape",
    }
)

#: Stages that hand the batches on as they are.
_LATER_BATCHES = ("batch", "rebatch", "unbatch", "ragged_batch", "window")


def length_stage(dataset: Dataset) -> Stage | None:
    """Return the stage that makes batches of changing length; None where there is none or it cannot be told.

    ``padded_batch`` pads to the longest of each batch unless it is given whole shapes;
    ``bucket_by_sequence_length`` does so within a bucket unless it pads to the boundary; ``to_tensor`` of a ragged
    batch and ``TextVectorization`` without an output length do so in a map.
    """
    found: Stage | None = None
    for stage in dataset.stages:
        if stage.op == "padded_batch":
            found = stage if _pads_to_longest(stage) else None
        elif stage.op == "bucket_by_sequence_length":
            boundary = stage.call.argument("pad_to_bucket_boundary")
            fixed = boundary is not None and not (isinstance(boundary, Const) and boundary.value is False)
            found = None if fixed else stage
        elif stage.op in _LATER_BATCHES:
            found = None
        elif stage.op == "map" and any(_pads_in_map(call) for call in stage.calls):
            found = stage
        elif found and stage.op == "map" and (not stage.calls or any(c.callee in _SETTLING for c in stage.calls)):
            # A map that cannot be read, or that pads by itself, leaves the shape unknown.
            found = None
    return found


def _pads_to_longest(stage: Stage) -> bool:
    shapes = stage.call.argument("padded_shapes")
    if shapes is None:
        return True
    parts = tuple(walk(shapes))
    if any(not isinstance(part, (Const, Items, Mapping, External)) for part in parts):
        return False
    return any(_has_none(part) for part in parts)


def _pads_in_map(call: Call) -> bool:
    """Say whether `call` makes a dense batch as long as its longest row."""
    if call.callee.endswith(".to_tensor"):
        return call.argument("shape", 1) is None
    made = call.receiver.call if isinstance(call.receiver, Produced) and call.callee.endswith("__call__") else None
    return (
        made is not None
        and made.callee == "keras.layers.TextVectorization"
        and not made.open
        and made.argument("output_sequence_length") is None
        and made.constant("output_mode") in (None, "int")
        and made.argument("ragged") is None
    )


def _has_none(part: Value) -> bool:
    """Say whether a constant leaves a dimension open: None itself, or a None or -1 in a folded shape."""
    if not isinstance(part, Const):
        return False
    value = part.value
    return value is None or (isinstance(value, (tuple, list)) and any(dim is None or dim == -1 for dim in value))


def varying_lengths(value: Value | None) -> Stage | None:
    """Return the stage that makes the lengths of batch `value` change; None where it is no such batch."""
    while value is not None:
        match value:
            case Element(source=Dataset() as dataset):
                return length_stage(dataset)
            case Element(source=inner) | Attribute(base=inner) | Subscript(base=inner):
                value = inner
            case Tensor(origin=None, parents=(inner, *_)):
                value = inner
            case _:
                return None
    return None
