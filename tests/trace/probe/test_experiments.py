"""What a what-if run hands to the training in place of its input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tflint_gpu.trace.probe.experiments import Experiment


def first_batch(given: Any, **arguments: Any) -> Any:
    nest = SimpleNamespace(
        map_structure=lambda take, value: (
            tuple(take(each) for each in value) if isinstance(value, tuple) else take(value)
        ),
        is_nested=lambda value: isinstance(value, (tuple, list, dict)),
    )
    run = SimpleNamespace(dataset_class=None, tensorflow=SimpleNamespace(nest=nest))
    return Experiment(run, "cached-batch", None)._first_batch(given, {"batch_size": 4, **arguments})


ROWS = np.arange(20.0).reshape(10, 2)


def test_a_lone_array_is_handed_on_bare_as_keras_does() -> None:
    batch, length = first_batch(ROWS)
    assert isinstance(batch, np.ndarray)
    assert (batch.shape, length) == ((4, 2), 3)


@pytest.mark.parametrize("parts", [{"y": ROWS}, {"y": ROWS, "sample_weight": ROWS}])
def test_inputs_with_targets_are_a_tuple(parts: dict[str, Any]) -> None:
    batch, _ = first_batch(ROWS, **parts)
    assert isinstance(batch, tuple)
    assert [part.shape for part in batch] == [(4, 2)] * (1 + len(parts))


def test_several_inputs_without_targets_are_one_element_of_a_tuple() -> None:
    batch, _ = first_batch((ROWS, ROWS))
    assert len(batch) == 1
    assert [part.shape for part in batch[0]] == [(4, 2), (4, 2)]
