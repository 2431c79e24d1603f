"""apply-as-methods: a transformation given to ``apply`` becomes methods, with its arguments where they belong."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_BOTH = {
    "positions": "f,size,drop,calls,old",
    "methods": "map($f, calls=$calls|{tensorflow.data.AUTOTUNE}).batch($size, drop=$drop)",
    "gone": "old",
}
_HEAD = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "d = d.apply(«x.both(f, 2)»)\n", "d = d.map(f, calls=tf.data.AUTOTUNE).batch(2)\n", id="short"
        ),
        pytest.param("d.apply(«x.both(f, 2, calls=4)»).p()\n", "d.map(f, calls=4).batch(2).p()\n", id="a keyword"),
        pytest.param(
            "d.apply(\n    «x.both(lambda a, b: (a, b), size=(2), drop=True, old=1)»\n)\n",
            "d.map(lambda a, b: (a, b), calls=tf.data.AUTOTUNE).batch((2), drop=True)\n",
            id="lines",
        ),
        pytest.param(
            "if d:\n    d = d.apply(\n        «x.both(" + "f" * 60 + ", 2, drop=n[1, 2])»)\n",
            "if d:\n    d = d.map(\n        " + "f" * 60 + ",\n        calls=tf.data.AUTOTUNE,\n"
            "    ).batch(2, drop=n[1, 2])\n",
            id="too long for a line",
        ),
        pytest.param(
            "d \\\n    .apply(«both(f, 2)»)\n", "d \\\n    .map(f, calls=tf.data.AUTOTUNE).batch(2)\n", id="lone"
        ),
    ],
)
def test_written_as_methods(text: str, after: str, edited: Edited) -> None:
    assert edited("apply-as-methods", _HEAD + text, **_BOTH) == _HEAD + after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("t = «x.both(f, 2)»\nd.apply(t)\n", "the transformation is not applied where it is made"),
        ("d.apply(«x.both(f, *n)»)\n", "the call unpacks arguments"),
        ("d.apply(«x.both(f, **n)»)\n", "the call unpacks arguments"),
        ("d.apply(«x.both(f, 2, new=3)»)\n", "nothing takes the argument new"),
        ("d.apply(«x.both(f,  # fast\n    2)»)\n", "a comment stands among the arguments"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("apply-as-methods", _HEAD + text, **_BOTH) == reason
