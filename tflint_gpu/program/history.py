"""Since when TensorFlow and Keras have a name or an argument, read from the interfaces of their wheels.

``scripts/generate_api_history.py`` makes the table. It holds what came or went between the oldest version that was
looked at and the newest; of anything else there is no saying here, and it is taken to exist.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tflint_gpu.program.target import Target

#: A version of TensorFlow as (major, minor).
Version: TypeAlias = "tuple[int, int]"

#: The last TensorFlow whose ``tf.keras`` is Keras 2, and the first with Keras 3.
_KERAS_2, _KERAS_3 = (2, 15), (2, 16)

#: What is older than the oldest version of the table, by the release notes.
_BEFORE = {
    "tf.data.AUTOTUNE": (2, 4),
    "keras.mixed_precision.set_global_policy": (2, 4),
    "keras.mixed_precision.LossScaleOptimizer": (2, 4),
    "tf.distribute.MultiWorkerMirroredStrategy": (2, 4),
}
#: Advice of one spelling today and another before: what must exist for today's, and both.
_RENAMED = (
    ("tf.data.AUTOTUNE", "", "tf.data.AUTOTUNE", "tf.data.experimental.AUTOTUNE"),
    ("tf.function", "reduce_retracing", "reduce_retracing=True", "experimental_relax_shapes=True"),
    ("keras.utils.PyDataset", "", "PyDataset", "keras.utils.Sequence"),
    ("keras.layers.Rescaling", "", "keras.layers.Rescaling", "keras.layers.experimental.preprocessing.Rescaling"),
)
_ARGUMENTS_BEFORE = {("keras.Model.compile", "steps_per_execution"): (2, 4)}


def exists(target: Target, name: str, argument: str = "") -> bool:
    """Say whether the versions that `target` means have `name` (canonical), with `argument` where one is named."""
    version = _version(target, name)
    oldest = (_ARGUMENTS_BEFORE.get((name, argument)) if argument else None) or _BEFORE.get(name)
    if oldest is not None and version < oldest:
        return False
    table = _table()
    spans = [table["names"].get(name), table["arguments"].get(name, {}).get(argument)]
    return all(_within(version, *span) for span in spans if span is not None)


def first_existing(target: Target, name: str, *arguments: str) -> str | None:
    """Return the first of `arguments`, newest spelling first, that `name` takes; None where it takes none."""
    return next((argument for argument in arguments if exists(target, name, argument)), None)


def spelled(text: str, target: Target) -> str:
    """Return advice, which names things as the newest versions do, with the names that `target` has for them."""
    for name, argument, new, old in _RENAMED:
        if new in text and not exists(target, name, argument):
            text = text.replace(new, old)
    return text


def _version(target: Target, name: str) -> Version:
    """Return the TensorFlow whose ``tf.keras`` is the target's Keras, for its names; the target's for others."""
    if not name.startswith("keras."):
        return target.tensorflow
    return min(target.tensorflow, _KERAS_2) if target.legacy_keras else max(target.tensorflow, _KERAS_3)


def _within(version: Version, since: str | None, gone: str | None) -> bool:
    return (since is None or version >= _numbers(since)) and (gone is None or version < _numbers(gone))


def _numbers(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


@functools.cache
def _table() -> dict[str, Any]:
    path = Path(__file__).with_name("data") / "api_history.json"
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table
