"""What the page of validation-overhead does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named

NAME = "validation-overhead"
HEAD = (
    "import numpy as np\nimport tensorflow as tf\n\n"
    "x, y = np.random.rand(4000, 64), np.random.rand(4000)\n"
    "xv, yv = np.random.rand(50_000, 64), np.random.rand(50_000)\n"
    "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), tf.keras.layers.Dense(1)])\n"
    "model.compile('adam', 'mse')\n"
)


def told(analyse: Analyse, text: str) -> list[int]:
    return [finding.location.line for finding in named(analyse(HEAD + text), NAME)]


def test_arrays_larger_than_those_of_training(analyse: Analyse) -> None:
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv, yv))\n") == [8]
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv[:500], yv[:500]))\n") == []


def test_capped_validation_is_fine(analyse: Analyse) -> None:
    text = "model.fit(x, y, batch_size=512, epochs=9, validation_data=(xv, yv), validation_steps=2)\n"
    assert told(analyse, text) == []


def test_usual_split_is_fine(analyse: Analyse) -> None:
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_split=0.2)\n") == []
    assert told(analyse, "model.fit(x, y, batch_size=512, epochs=9, validation_split=0.5)\n") == [8]


def test_sizes_that_nobody_knows_are_fine(analyse: Analyse) -> None:
    text = (
        "xv, yv = np.load('xv.npy'), np.load('yv.npy')\n"
        "model.fit(x, y, batch_size=512, validation_data=(xv, yv))\n"
    )
    assert told(analyse, text) == []


def test_evaluate_after_every_step(analyse: Analyse) -> None:
    text = (
        "for i in range(0, 4000, 100):\n"
        "    model.train_on_batch(x[i:i + 100], y[i:i + 100])\n"
        "    {}model.evaluate(x, y, batch_size=512)\n"
    )
    assert told(analyse, text.format("")) == [10]
    assert told(analyse, text.format("if i % 1000 == 0: ")) == []
