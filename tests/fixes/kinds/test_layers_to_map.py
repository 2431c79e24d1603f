"""layers-to-map: the first layers leave the model's list, and the data come through them."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_HEAD = "import tensorflow as tf\n"
_MAP = "num_parallel_calls=tf.data.AUTOTUNE)\n"
_AHEAD = ".prefetch(tf.data.AUTOTUNE)\n"


@pytest.mark.parametrize(
    ("text", "parameters", "after"),
    [
        pytest.param(
            "m = «S([i, v, e(1)])»\nm.compile()\n‹m.fit(d, validation_data=w)›\n",
            {"first": "0", "end": "2", "inputs": "1"},
            f"m = S([e(1)])\nm.compile()\nd = d.map(lambda x, y: (v(x), y), {_MAP}d = d{_AHEAD}"
            f"w = w.map(lambda x, y: (v(x), y), {_MAP}w = w{_AHEAD}m.fit(d, validation_data=w)\n",
            id="a layer with a name, and its input",
        ),
        pytest.param(
            "def f(d):\n    m = «S([\n        i(),\n        a(1),\n        b(2),\n        c(),  # last\n    ])»\n"
            "    return ‹m.fit(\n        d,\n        validation_data=w)›\n",
            {"first": "1", "end": "3", "inputs": "0", "options": ", training=True"},
            "def f(d):\n    augmentation = S([\n        a(1),\n        b(2),\n    ])\n"
            "    m = S([\n        i(),\n        c(),  # last\n    ])\n"
            f"    d = d.map(lambda x, y: (augmentation(x, training=True), y), {_MAP}    d = d{_AHEAD}"
            "    return m.fit(\n        d,\n        validation_data=w)\n",
            id="two layers become a model, in a function",
        ),
    ],
)
def test_moved(text: str, parameters: dict[str, str], after: str, edited: Edited) -> None:
    assert edited("layers-to-map", _HEAD + text, **parameters) == _HEAD + after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("m = «S(v)»\n‹m.fit(d)›\n", "the layers are not the first in the model's list"),
        ("m = «S([v])»\n‹m.fit(d)›\n", "the layers are not the first in the model's list"),
        ("m = «S([\n    v,  # words\n    e])»\n‹m.fit(d)›\n", "a comment stands among the layers"),
        ("m = «S([v, e])»\nif d:\n    ‹m.fit(d)›\n", "the model is built in one block and trained in another"),
        ("m = «S([v, e])»\n‹m.fit(f(d))›\n", "the data have no name of their own"),
        ("m = «S([v, e])»\n‹m.fit(d, validation_data=(a, b))›\n", "the data have no name of their own"),
        ("m = «S([v, e])»; ‹m.fit(d)›\n", "the statement shares its line with another; part them"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("layers-to-map", _HEAD + text, first="0", end="1", inputs="0") == reason
