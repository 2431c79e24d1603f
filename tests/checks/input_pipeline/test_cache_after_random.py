"""TFG109: what a cache freezes, and what it may keep."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse
from tflint_gpu.findings import Severity

PROGRAM = """
import sys
import tensorflow as tf

flip = tf.keras.Sequential([tf.keras.layers.RandomFlip(), tf.keras.layers.RandomRotation(0.1)])


def noisy(image, label):
    return tf.image.random_contrast(image, 0.5, 1.5), label


def seeded(image, label):
    return tf.image.stateless_random_flip_left_right(image, seed=(label, 2)), label


def layered(image, label):
    return flip(image{training}), label


def train(images, labels):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    {pipeline}
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(512), tf.keras.layers.Dense(10)])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit({fit})
"""


def severities(
    analyse: Analyse,
    pipeline: str,
    fit: str = "ds.batch(64).prefetch(2), epochs=9",
    training: str = "",
    **rest: str,
) -> list[Severity]:
    text = PROGRAM.format(pipeline=pipeline, fit=fit, training=training)
    return [finding.severity for finding in analyse(text, select=("cache-after-random",), **rest)]


@pytest.mark.parametrize("function", ["noisy", "seeded", "layered"])
def test_random_maps_are_frozen(analyse: Analyse, function: str) -> None:
    assert severities(analyse, f"ds = ds.map({function}).cache().shuffle(1000)") == [Severity.ERROR]


def test_random_layers_of_keras_2_sleep_until_told_to_train(analyse: Analyse) -> None:
    pipeline = "ds = ds.map(layered).cache().shuffle(1000)"

    assert severities(analyse, pipeline, tensorflow="2.10") == []
    assert severities(analyse, pipeline, training=", training=True", tensorflow="2.10") == [Severity.ERROR]


def test_random_layers_switched_off_draw_nothing(analyse: Analyse) -> None:
    assert severities(analyse, "ds = ds.map(layered).cache().shuffle(9)", training=", training=False") == []


def test_only_shuffle_is_frozen(analyse: Analyse) -> None:
    assert severities(analyse, "ds = ds.shuffle(1000).cache()") == [Severity.WARNING]


def test_cache_fixes_the_parts_of_a_split(analyse: Analyse) -> None:
    assert severities(analyse, "ds = ds.shuffle(1000).take(800).cache()") == [Severity.INFO]


def test_loader_shuffles_once(analyse: Analyse) -> None:
    loader = "ds = tf.keras.utils.image_dataset_from_directory('photos').cache()"

    assert severities(analyse, loader, "ds.prefetch(2), epochs=9") == [Severity.INFO]


@pytest.mark.parametrize(
    ("pipeline", "fit"),
    [
        pytest.param("ds = ds.cache().shuffle(1000).map(noisy)", "ds.batch(64), epochs=9", id="cache first"),
        pytest.param("ds = ds.shuffle(9).cache().shuffle(1000)", "ds.batch(64), epochs=9", id="shuffled again"),
        pytest.param(
            "ds = ds.shuffle(9, reshuffle_each_iteration=False).cache()",
            "ds.batch(64), epochs=9",
            id="fixed order",
        ),
        pytest.param(
            "held = ds.map(noisy).batch(64).cache()",
            "ds.batch(64), validation_data=held, epochs=9",
            id="validation",
        ),
        pytest.param(
            "ds = tf.keras.utils.image_dataset_from_directory('photos', shuffle=False).cache()",
            "ds.prefetch(2), epochs=9",
            id="loader that does not shuffle",
        ),
        pytest.param(
            "if sys.argv[2:]:\n        ds = ds.map(noisy)\n    if sys.argv[3:]:\n        ds = ds.cache()",
            "ds.shuffle(9).batch(64), epochs=9",
            id="branches that may not meet",
        ),
    ],
)
def test_is_silent_on(analyse: Analyse, pipeline: str, fit: str) -> None:
    assert severities(analyse, pipeline, fit) == []


def test_one_epoch_never_reads_the_cache(analyse: Analyse) -> None:
    assert severities(analyse, "ds = ds.map(noisy).cache()", "ds.batch(64)") == [Severity.INFO]
