"""Since when there is what rules look for or advise."""

from __future__ import annotations

import pytest

from tflint_gpu.program.api import SIGNATURES
from tflint_gpu.program.history import _table, exists, first_existing, spelled
from tflint_gpu.program.target import NEWEST, Target


def on(tensorflow: str, keras: tuple[int, int] | None = None) -> Target:
    major, minor = map(int, tensorflow.split("."))
    return Target((major, minor), keras or ((2, minor) if minor < 16 else NEWEST[1]))


@pytest.mark.parametrize(
    ("name", "argument", "first"),
    [
        ("tf.data.AUTOTUNE", "", "2.4"),
        ("tf.function", "jit_compile", "2.5"),
        ("tf.function", "reduce_retracing", "2.9"),
        ("tf.data.Dataset.batch", "num_parallel_calls", "2.5"),
        ("tf.data.Dataset.map", "synchronous", "2.18"),
        ("tf.data.Dataset.rebatch", "", "2.11"),
        ("tf.data.Dataset.load", "", "2.10"),
        ("tf.data.Dataset.take_while", "", "2.6"),
        ("keras.Model.compile", "steps_per_execution", "2.4"),
        ("keras.Model.compile", "jit_compile", "2.8"),
        ("keras.mixed_precision.set_global_policy", "", "2.4"),
        ("keras.layers.Resizing", "", "2.6"),
        ("keras.utils.image_dataset_from_directory", "", "2.6"),
        ("keras.utils.PyDataset", "", "2.16"),
        ("keras.optimizers.LossScaleOptimizer", "", "2.16"),
        ("keras.optimizers.Optimizer.apply", "", "2.16"),
    ],
)
def test_what_came(name: str, argument: str, first: str) -> None:
    before = f"2.{int(first[2:]) - 1}"

    assert not exists(on(before), name, argument)
    assert exists(on(first), name, argument)
    assert exists(on("2.21"), name, argument)


@pytest.mark.parametrize(
    ("name", "argument", "last"),
    [
        ("keras.Model.fit_generator", "", "2.15"),
        ("keras.Model.fit", "workers", "2.15"),
        ("keras.mixed_precision.experimental.set_policy", "", "2.8"),
    ],
)
def test_what_went(name: str, argument: str, last: str) -> None:
    after = f"2.{int(last[2:]) + 1}"

    assert exists(on("2.4"), name, argument) and exists(on(last), name, argument)
    assert not exists(on(after), name, argument)


@pytest.mark.parametrize("tensorflow", ["2.4", "2.12", "2.21"])
@pytest.mark.parametrize("name", ["tf.data.experimental.AUTOTUNE", "keras.utils.Sequence", "no.such.thing"])
def test_what_nothing_is_said_of_exists(name: str, tensorflow: str) -> None:
    assert exists(on(tensorflow), name)


def test_keras_may_be_of_another_age_than_tensorflow() -> None:
    legacy, three = on("2.18", (2, 18)), on("2.15", (3, 4))

    assert exists(legacy, "keras.Model.fit", "workers") and not exists(legacy, "keras.utils.PyDataset")
    assert exists(three, "keras.utils.PyDataset") and not exists(three, "keras.Model.fit", "workers")


def test_spellings() -> None:
    relaxed = ("reduce_retracing", "experimental_relax_shapes")

    assert first_existing(on("2.8"), "tf.function", *relaxed) == "experimental_relax_shapes"
    assert first_existing(on("2.9"), "tf.function", *relaxed) == "reduce_retracing"
    assert first_existing(on("2.7"), "keras.Model.compile", "jit_compile") is None


@pytest.mark.parametrize(
    ("advice", "last", "before"),
    [
        ("Use prefetch(tf.data.AUTOTUNE).", "2.3", "Use prefetch(tf.data.experimental.AUTOTUNE)."),
        ("Add reduce_retracing=True.", "2.8", "Add experimental_relax_shapes=True."),
        ("Use a PyDataset.", "2.15", "Use a keras.utils.Sequence."),
    ],
)
def test_advice_has_the_names_of_its_target(advice: str, last: str, before: str) -> None:
    assert spelled(advice, on(last)) == before
    assert spelled(advice, on(f"2.{int(last[2:]) + 1}")) == advice


def test_the_table_is_about_what_rules_know() -> None:
    table = _table()

    assert set(table["arguments"]) <= set(SIGNATURES)
    assert all(set(spans) <= set(SIGNATURES[name]) for name, spans in table["arguments"].items())
    assert table["versions"][0] == "2.4"
    assert table["versions"][-1] == ".".join(map(str, NEWEST[0]))


def test_arguments_of_directory_loaders_are_told_apart() -> None:
    images, sounds = (SIGNATURES[f"keras.utils.{kind}_dataset_from_directory"] for kind in ("image", "audio"))

    assert images[5:8] == ("batch_size", "image_size", "shuffle")
    assert sounds[4:7] == ("batch_size", "sampling_rate", "output_sequence_length")
