"""TFG110: orders that cost, and orders that are meant."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse
from tflint_gpu.findings import Severity

PROGRAM = """
import tensorflow as tf
import tensorflow_datasets as tfds


def read(name, label):
    return tf.io.decode_png(tf.io.read_file(name)), label


def train(names, labels, steps):
    ds = tf.data.Dataset.from_tensor_slices((names, labels))
    ds = {pipeline}
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(512), tf.keras.layers.Dense(10)])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(ds, epochs=9{fit})
"""


def severities(analyse: Analyse, pipeline: str, fit: str = "") -> list[Severity]:
    text = PROGRAM.format(pipeline=pipeline, fit=fit)
    return [finding.severity for finding in analyse(text, select=("pipeline-order",))]


@pytest.mark.parametrize(
    ("pipeline", "severity"),
    [
        ("ds.batch(64).shuffle(100).prefetch(2)", Severity.WARNING),
        ("tfds.load('x', split='train').batch(64).shuffle(100).prefetch(2)", Severity.WARNING),
        ("ds.padded_batch(64).shuffle(100).prefetch(2)", Severity.INFO),
        ("ds.repeat().cache().shuffle(100).batch(64)", Severity.WARNING),
        ("ds.repeat(5).shuffle(100).batch(64)", Severity.INFO),
        ("ds.cache().take(1000).shuffle(100).batch(64)", Severity.INFO),
        ("ds.shuffle(100).batch(64).unbatch().batch(32)", Severity.INFO),
        ("ds.cache().map(read).shuffle(100).batch(64)", Severity.INFO),
    ],
)
def test_order_costs(analyse: Analyse, pipeline: str, severity: Severity) -> None:
    assert severity in severities(analyse, pipeline)


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param("ds.cache().shuffle(100).repeat().batch(64).prefetch(2)", id="the right order"),
        pytest.param("ds.batch(101).map(lambda n, l: (n, l)).shuffle(100).batch(64)", id="windows"),
        pytest.param("ds.shuffle(100).batch(64).shuffle(8)", id="samples shuffled before"),
        pytest.param("ds.batch(64).unbatch().shuffle(100).batch(32)", id="shuffled while apart"),
        pytest.param("ds.batch(64).rebatch(32)", id="rebatch"),
        pytest.param("tf.keras.utils.image_dataset_from_directory('d').cache().shuffle(9)", id="directory loader"),
        pytest.param("tfds.load('x', split='train', batch_size=64).shuffle(9)", id="tfds"),
        pytest.param(
            "tfds.load('x', split='train', shuffle_files=True).batch(64).shuffle(9)", id="shuffled shards"
        ),
        pytest.param("ds.repeat(1).shuffle(100).batch(64)", id="once"),
        pytest.param("ds.repeat(steps).cache().shuffle(100).batch(64)", id="unknown count"),
        pytest.param("ds.batch(1).shuffle(100)", id="batches of one"),
        pytest.param("ds.map(read).cache().shuffle(100).batch(64)", id="cache behind the read"),
    ],
)
def test_order_is_right(analyse: Analyse, pipeline: str) -> None:
    assert [found for found in severities(analyse, pipeline) if found >= Severity.INFO] == []


def test_validation_may_be_in_any_order(analyse: Analyse) -> None:
    assert (
        severities(analyse, "ds.shuffle(9).batch(64)", ", validation_data=ds.shuffle(9).batch(64).shuffle(9)")
        == []
    )
