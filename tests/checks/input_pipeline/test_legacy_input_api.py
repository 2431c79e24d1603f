"""Tests of legacy-input-api beyond its page."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

RULE = "legacy-input-api"

HEAD = """\
import numpy as np
import tensorflow as tf

x = np.zeros((64, 8))
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
"""


def of(analyse: Analyse, body: str, version: str | None = None) -> list[Severity]:
    return [finding.severity for finding in named(analyse(HEAD + body, version, (RULE,)), RULE)]


@pytest.mark.parametrize(
    "line",
    [
        "model.fit_generator(iter([]), epochs=2)",
        "tf.compat.v1.disable_eager_execution()",
        "tf.estimator.Estimator(model_fn=None)",
        "tf.compat.v1.train.start_queue_runners()",
        "it = tf.data.Dataset.range(8).make_one_shot_iterator()",
        "ds = tf.data.Dataset.range(8).apply(tf.data.experimental.map_and_batch(lambda v: v, 4))",
        "gen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)",
        "with tf.compat.v1.Session() as s:\n    for i in range(9):\n        s.run(model, feed_dict={model: x})",
    ],
)
def test_names(line: str, analyse: Analyse) -> None:
    assert of(analyse, line + "\n") == [Severity.INFO]


def test_is_silent_on_code_pinned_to_tensorflow_1(analyse: Analyse) -> None:
    assert of(analyse, "model.fit_generator(iter([]), epochs=2)\n", "1.15") == []


def test_arguments_of_keras_2_fail_in_keras_3(analyse: Analyse) -> None:
    line = "model.evaluate(x, x, workers=2)\n"
    assert of(analyse, line, "2.15") == []
    assert of(analyse, line, "2.18") == [Severity.INFO]


def test_pydataset_few_workers_has_the_word_on_workers_of_fit(analyse: Analyse) -> None:
    found = analyse(HEAD + "model.fit(x, x, workers=2)\n", "2.18")
    assert named(found, RULE) == []
    assert named(found, "pydataset-few-workers")


def test_old_name_of_autotune_is_a_hint(analyse: Analyse) -> None:
    line = "ds = tf.data.Dataset.range(8).prefetch(tf.data.experimental.AUTOTUNE)\n"
    assert of(analyse, line) == [Severity.HINT]
    assert of(analyse, line.replace("experimental.", "")) == []


def test_a_flow_on_the_same_line_has_been_told(analyse: Analyse) -> None:
    line = (
        "f = tf.keras.preprocessing.image.ImageDataGenerator().flow_from_directory('p')\nmodel.fit(f, epochs=2)\n"
    )
    assert of(analyse, line) == []
