"""What the page of keras-layer-in-data-loader does not show."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tests.checks.snippets import FIT, SETUP

NAME = "keras-layer-in-data-loader"
MADE = (
    "def make(x, y):\n    return {made}, y\n\n"
    "mapped = ds.map(lambda x, y: tf.py_function(make, [x, y], [tf.float32, tf.float32]))\n"
)
USED = "model.compile('adam', 'mse')\nmodel.fit(mapped)\n"


def test_op_in_python_that_feeds_training(analyse: Analyse) -> None:
    assert len(named(analyse(SETUP + MADE.format(made="tf.image.resize(x, (8, 8))") + USED), NAME)) == 1


def test_op_in_python_that_feeds_a_look_at_the_data_is_fine(analyse: Analyse) -> None:
    text = SETUP + MADE.format(made="tf.image.resize(x, (8, 8))") + "for x, y in mapped:\n    print(x)\n" + FIT
    assert named(analyse(text), NAME) == []


@pytest.mark.parametrize(
    "made", ["tf.compat.as_text(x)", "tf.audio.encode_wav(x, 16000)", "tf.train.Int64List(x)"]
)
def test_what_no_gpu_computes_is_fine(analyse: Analyse, made: str) -> None:
    assert named(analyse(SETUP + MADE.format(made=made) + USED), NAME) == []
