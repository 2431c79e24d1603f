"""Advice that exists in the version the program is meant for."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named

TRAIN = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
"""
NO_PREFETCH = f"""{TRAIN}
ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1]))).shuffle(4096).batch(256)
model.fit(ds, epochs=3)
"""
OLD_NAME = f"""{TRAIN}
ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1]))).shuffle(4096).batch(256)
model.fit(ds.prefetch(tf.data.experimental.AUTOTUNE), epochs=3)
"""
REBATCHED = f"""{TRAIN}
ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1]))).batch(64).unbatch().batch(256)
model.fit(ds.prefetch(2), epochs=3)
"""
STEP = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1]))).shuffle(4096).batch(256)
for epoch in range(3):
    for x, y in ds.prefetch(2):
        step(x, y)
"""
SEGMENTS = f"""{STEP.replace("(model(x) - y) ** 2", "tf.math.segment_mean(model(x) - y, tf.range(256))")}"""


@pytest.mark.parametrize(
    ("rule", "text", "version", "words", "absent"),
    [
        ("missing-prefetch", NO_PREFETCH, "2.3", "tf.data.experimental.AUTOTUNE", "(tf.data.AUTOTUNE"),
        ("missing-prefetch", NO_PREFETCH, "2.4", "tf.data.AUTOTUNE", "experimental"),
        ("pipeline-order", REBATCHED, "2.10", "Batch once.", "rebatch"),
        ("pipeline-order", REBATCHED, "2.11", "rebatch()", "\0"),
        ("xla-off", STEP, "2.4", "experimental_compile=True", "jit_compile"),
        ("xla-off", STEP, "2.5", "jit_compile=True", "experimental"),
        ("cpu-only-op", SEGMENTS, "2.4", "SegmentMean", "\0"),
    ],
)
def test_advice_exists(analyse: Analyse, rule: str, text: str, version: str, words: str, absent: str) -> None:
    (finding,) = named(analyse(text, version, (rule,)), rule)

    assert words in finding.message
    assert absent not in finding.message


@pytest.mark.parametrize(
    ("rule", "text", "version"),
    [("legacy-input-api", OLD_NAME, "2.3"), ("cpu-only-op", SEGMENTS, "2.21")],
)
def test_what_is_right_in_that_version_is_no_finding(analyse: Analyse, rule: str, text: str, version: str) -> None:
    assert named(analyse(text, version, (rule,)), rule) == []


def test_the_old_name_is_told_once_there_is_a_new_one(analyse: Analyse) -> None:
    assert named(analyse(OLD_NAME, "2.4", ("legacy-input-api",)), "legacy-input-api")


#: Rules on TensorFlow's graphs and kernels, by the text of one program each that they speak of on TensorFlow.
GRAPH_RULES = {
    "run-eagerly-enabled": TRAIN.replace('"mse"', '"mse", run_eagerly=True')
    + "model.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), epochs=3)\n",
    "xla-off": STEP,
    "cpu-only-op": STEP.replace("(model(x) - y) ** 2", "tf.linalg.eig(tf.matmul(x, y))[0]"),
}


@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("rule", GRAPH_RULES)
def test_rules_on_graphs_are_off_on_another_backend(analyse: Analyse, rule: str, backend: str) -> None:
    text = GRAPH_RULES[rule]
    chosen = f'import os\nos.environ["KERAS_BACKEND"] = "{backend}"\n{text}'

    assert named(analyse(text, "2.21", (rule,)), rule)
    assert named(analyse(chosen, "2.21", (rule,)), rule) == []


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_rules_on_data_are_on_with_another_backend(analyse: Analyse, backend: str) -> None:
    chosen = f'import os\nos.environ["KERAS_BACKEND"] = "{backend}"\n{NO_PREFETCH}'

    assert named(analyse(chosen, "2.21", ("missing-prefetch",)), "missing-prefetch")
