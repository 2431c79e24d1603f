"""What the page of vectorized-map-fallback does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named

NAME = "vectorized-map-fallback"
TEXT = """\
import numpy as np
import tensorflow as tf


class Rows(tf.keras.layers.Layer):
    def call(self, x):
        return tf.vectorized_map(lambda row: {row}, x{options})


model = tf.keras.Sequential([tf.keras.Input((64, 64)), Rows(), tf.keras.layers.Flatten()])
model.compile("adam", "mse")
model.fit(np.zeros((4096, 64, 64), "float32"), np.zeros(4096), batch_size=256)
"""


def found(analyse: Analyse, row: str, options: str = "") -> int:
    return len(named(analyse(TEXT.format(row=row, options=options)), NAME))


def test_ops_without_a_vectorized_form(analyse: Analyse) -> None:
    assert found(analyse, "tf.where(row > 0)") == 1
    assert found(analyse, "tf.linalg.qr(row)[0]") == 1


def test_ops_with_one_are_fine(analyse: Analyse) -> None:
    assert found(analyse, "tf.linalg.inv(row)") == 0
    assert found(analyse, "tf.where(row > 0, row, 0.0)") == 0


def test_fallback_switched_off_is_no_fallback(analyse: Analyse) -> None:
    assert found(analyse, "tf.linalg.qr(row)[0]", ", fallback_to_while_loop=False") == 0


def test_in_the_dataset_it_is_fine(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n\n"
        "ds = tf.data.Dataset.from_tensor_slices(tf.zeros((64, 8, 8))).batch(8)\n"
        "ds = ds.map(lambda x: tf.vectorized_map(lambda row: tf.linalg.qr(row)[0], x)).prefetch(2)\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\nmodel.fit(ds)\n"
    )
    assert named(analyse(text), NAME) == []


def test_layers_of_other_versions_of_keras_2_are_fine(analyse: Analyse) -> None:
    text = (
        "import numpy as np\nimport tensorflow as tf\n\n"
        "model = tf.keras.Sequential([tf.keras.Input((64, 64, 3)), tf.keras.layers.RandomContrast(0.2)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(np.zeros((4096, 64, 64, 3)), np.zeros(4096), batch_size=256)\n"
    )
    counts = [
        len(named(analyse(text, tensorflow=version), NAME)) for version in ("2.8", "2.9", "2.10", "2.15", "2.21")
    ]
    assert counts == [0, 1, 1, 0, 0]
