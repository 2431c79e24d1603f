"""Edits of one line: decorate, add-option, assign-instead, narrow-dtype, slices-of-arrays."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_HEAD = "import tensorflow as tf\n"
_NOT_PLAIN = "the generator does more than walk over arrays by their names"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("# step\n«def f():\n    pass»\n", "# step\n@tf.function\ndef f():\n    pass\n"),
        (
            "class A:\n    «def f(self):\n        pass»\n",
            "class A:\n    @tf.function\n    def f(self):\n        pass\n",
        ),
        ("«@other\ndef f():\n    pass»\n", None),
        ("«async def f():\n    pass»\n", None),
    ],
)
def test_decorate(text: str, after: str | None, edited: Edited) -> None:
    made = edited("decorate", _HEAD + text, decorator="{tensorflow.function}")
    assert made == (_HEAD + after if after else made)
    assert after or made in ("the function has decorators already", "no function stands there any more")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("@«tf.function»\ndef f():\n    pass\n", "@tf.function(a=1)\ndef f():\n    pass\n"),
        ("@«tf.function()»  # fast\ndef f():\n    pass\n", "@tf.function(a=1)  # fast\ndef f():\n    pass\n"),
        ("g = «tf.function(f)»\n", "g = tf.function(f, a=1)\n"),
        ("g = «tf.function(f, a=2)»\n", "the call already sets a"),
    ],
)
def test_add_option(text: str, after: str, edited: Edited) -> None:
    assert edited("add-option", text, name="a", value="1") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("«o.p = q.OFF»  # one\n", "o.p = NEW  # one\n"),
        ("«o.p = choose()»\n", "the value comes from elsewhere; change it there"),
        ("«o.p += 1»\n", "the value comes from elsewhere; change it there"),
    ],
)
def test_assign_instead(text: str, after: str, edited: Edited) -> None:
    assert edited("assign-instead", text, text="NEW") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("f(«dtype='float64'»)\n", "f(dtype='float32')\n"),
        ("f(x, «tf.float64»)  # float64\n", "f(x, tf.float32)  # float64\n"),
        ('f(x, «"double"»)\n', 'f(x, "float32")\n'),
        ("f(x, «kind»)\n", "the type comes from elsewhere; change it there"),
        ("f(x, «f(float64)»)\n", "the type comes from elsewhere; change it there"),
    ],
)
def test_narrow_dtype(text: str, after: str, edited: Edited) -> None:
    assert edited("narrow-dtype", text) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("d = «D.from_generator(lambda: zip(x, y), t)».b()\n", "d = D.from_tensor_slices((x, y)).b()\n"),
        ("d = «D.from_generator(generator=lambda: iter(x), t=1)»\n", "d = D.from_tensor_slices(x)\n"),
        (
            "def g():\n    for i in range(len(x)):\n        yield x[i], y[i]\nd = «D.from_generator(g, t)»\n",
            "def g():\n    for i in range(len(x)):\n        yield x[i], y[i]\nd = D.from_tensor_slices((x, y))\n",
        ),
        (
            "def g():\n    for a, b in zip(x, y):\n        yield a, b\nd = «D.from_generator(\n    g, t,\n)»\n",
            "def g():\n    for a, b in zip(x, y):\n        yield a, b\nd = D.from_tensor_slices((x, y))\n",
        ),
        ("def g():\n    for a in x:\n        yield a / 2\nd = «D.from_generator(g, t)»\n", _NOT_PLAIN),
        ("def g():\n    for a, b in zip(x, y):\n        yield b, a\nd = «D.from_generator(g, t)»\n", _NOT_PLAIN),
        (
            "def g():\n    for i in range(len(x)):\n        yield x[i], z\nd = «D.from_generator(g, t)»\n",
            _NOT_PLAIN,
        ),
        ("def g(n):\n    for a in x:\n        yield a\nd = «D.from_generator(g, t)»\n", _NOT_PLAIN),
        ("d = «D.from_generator(lambda: zip(f(x), y), t)»\n", _NOT_PLAIN),
        ("d = «D.from_generator(g, t, args=[1])»\n", "the generator takes arguments"),
        (
            "d = «D.from_generator(\n    lambda: zip(x, y),  # rows\n    t)»\n",
            "a comment stands among the arguments",
        ),
    ],
)
def test_slices_of_arrays(text: str, after: str, edited: Edited) -> None:
    assert edited("slices-of-arrays", text) == after
