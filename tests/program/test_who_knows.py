"""Which part of the machine is asked what a name means: each for the names of its own tables, most for none."""

from __future__ import annotations

import pytest

from tflint_gpu.program import api, datasets, graphs, models, outside
from tflint_gpu.program.invoke import _handlers_of
from tflint_gpu.program.kernels import cpu_only, lacks_kernels

TABLES = sorted({*api.DATASET_SOURCES, *api.DATASET_JOINS, *api.DATASET_APPLY})


@pytest.mark.parametrize("name", TABLES)
def test_sources_joins_and_transformations_are_datasets(name: str) -> None:
    assert datasets.known in _handlers_of(name)


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("builtins.len", outside),
        ("types.SimpleNamespace", outside),
        ("absl.flags.DEFINE_integer", outside),
        ("tf.data.Dataset.map", datasets),
        ("keras.Sequential", models),
        ("keras.layers.Dense", models),
        ("tf.function", graphs),
        ("tf.GradientTape", graphs),
    ],
)
def test_a_name_is_asked_where_it_is_known(name: str, room: object) -> None:
    assert _handlers_of(name) == (room.known,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["tf.abs", "numpy.load", "builtins.print", "torch.nn.Linear", ""])
def test_for_most_names_nothing_is_asked(name: str) -> None:
    assert _handlers_of(name) == ()


@pytest.mark.parametrize("version", [None, (2, 10), (2, 21)])
def test_a_name_that_lacks_no_kernel_never_runs_on_the_cpu(version: tuple[int, int] | None) -> None:
    names = ["tf.abs", "tf.image.resize", "tf.strings.join", "tf.raw_ops.AsString", "tf.unique", "tf.matmul"]

    assert not any(cpu_only(name, None, version) for name in names if not lacks_kernels(name, version))
    assert lacks_kernels("tf.raw_ops.AsString", version)
