"""What the page of dtype-cpu-fallback does not show."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

NAME = "dtype-cpu-fallback"
STEP = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function{}
def step(x):
    with tf.GradientTape() as tape:
        out = model(x)
        whole = tf.cast(out, tf.int32)
        half = tf.cast(out, "float16")
        loss = tf.reduce_mean(out)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return {}


for x in tf.data.Dataset.from_tensor_slices(tf.zeros((4096, 64))).batch(256).prefetch(2):
    step(x)
"""


@pytest.mark.parametrize(
    "expression",
    [
        "tf.matmul(whole, whole, transpose_b=True)",
        "tf.einsum('ij,kj->ik', whole, whole)",
        "tf.argmax(whole, -1)",
        "tf.reduce_mean(whole + 1)",
        "tf.linalg.inv(half)",
        "tf.where(half)",
        "tf.image.resize(tf.reshape(tf.cast(out, tf.uint8), (-1, 8, 8, 1)), (4, 4))",
    ],
)
def test_dtypes_without_a_gpu_kernel(analyse: Analyse, expression: str) -> None:
    (found,) = named(analyse(STEP.format("", expression)), NAME)
    assert found.location.line == 15
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(
    "expression",
    [
        "tf.matmul(out, out, transpose_b=True)",
        "tf.argmax(out, -1)",
        "tf.reduce_mean(tf.cast(whole, tf.float32))",
        "whole + whole",
        "tf.where(out > 0, whole, 0)",
        "tf.argmax(tf.cast(out == 0, tf.float32), -1)",
        "tf.gather(out, tf.argmax(out, -1))",
    ],
)
def test_dtypes_with_a_gpu_kernel_are_fine(analyse: Analyse, expression: str) -> None:
    assert named(analyse(STEP.format("", expression)), NAME) == []


def test_shapes_and_sizes_are_fine(analyse: Analyse) -> None:
    assert named(analyse(STEP.format("", "tf.reduce_mean(tf.shape(out)) + tf.argmax(tf.range(9))")), NAME) == []


def test_unknown_dtype_is_left_alone(analyse: Analyse) -> None:
    assert named(analyse(STEP.format("", "tf.matmul(tf.cast(x, model.dtype), out)")), NAME) == []


def test_xla_runs_it_on_the_gpu(analyse: Analyse) -> None:
    text = STEP.format("(jit_compile=True)", "tf.matmul(whole, whole, transpose_b=True)")
    assert named(analyse(text), NAME) == []
