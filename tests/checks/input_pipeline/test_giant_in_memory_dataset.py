"""What the page of giant-in-memory-dataset does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

NAME = "giant-in-memory-dataset"
HEAD = "import numpy as np\nimport tensorflow as tf\n\n"


def test_width_and_slices_count(analyse: Analyse) -> None:
    text = HEAD + "x = np.random.rand(60_000, 64, 64).astype({})[{}]\nds = tf.data.Dataset.from_tensor_slices(x)\n"
    assert len(named(analyse(text.format("'float64'", ":")), NAME)) == 1
    assert named(analyse(text.format("'uint8'", ":")), NAME) == []
    assert named(analyse(text.format("'float64'", ":1000")), NAME) == []


def test_arrays_of_a_dict_add_up(analyse: Analyse) -> None:
    text = HEAD + (
        "a = np.zeros((100_000, 1000), np.float32)\nb = np.zeros((200_000, 1000), np.float32)\n"
        "ds = tf.data.Dataset.from_tensor_slices({'a': a, 'b': b})\n"
    )
    (found,) = named(analyse(text), NAME)
    assert "1.2 GB" in found.message


def test_fit_is_info(analyse: Analyse) -> None:
    text = HEAD + (
        "x = np.zeros((400_000, 1000), np.float32)\n"
        "model = tf.keras.Sequential([tf.keras.Input((1000,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(x, np.zeros(400_000), batch_size=512)\n"
    )
    assert [f.severity for f in named(analyse(text), NAME)] == [Severity.INFO]


def test_memory_map_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "x = np.memmap('x.bin', dtype='float32', mode='r', shape=(10_000_000, 1000))\n"
        "ds = tf.data.Dataset.range(10_000_000).batch(512)\n"
        "ds = ds.map(lambda i: tf.numpy_function(lambda rows: x[rows], [i], tf.float32))\n"
    )
    assert named(analyse(text), NAME) == []
