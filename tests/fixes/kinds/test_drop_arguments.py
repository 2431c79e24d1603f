"""drop-arguments: keyword arguments go with their commas, and nothing else does."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("f(«g(a, b=1)»)\n", "f(g(a))\n", id="last of two"),
        pytest.param("«g(b=1)»  # kept\n", "g()  # kept\n", id="the only one"),
        pytest.param("«g( b=1, )»\n", "g( )\n", id="the only one, with a comma"),
        pytest.param("«g(b=1, a=2)»\n", "g(a=2)\n", id="first of two"),
        pytest.param("«g((a), b=(1))»\n", "g((a))\n", id="parentheses"),
        pytest.param("«g(*a, b=1, **c)»\n", "g(*a, **c)\n", id="between unpacked ones"),
        pytest.param("«g(a, b=1,)»\n", "g(a,)\n", id="a comma at the end"),
        pytest.param("«g(a, b=1, c=2)»\n", "g(a)\n", id="two in a row"),
        pytest.param("«g(c=2, a=3, b=1)»\n", "g(a=3)\n", id="two apart"),
        pytest.param("«g(a,\n  b=1)»\n", "g(a)\n", id="on a line of its own, closed there"),
        pytest.param(
            "«g(\n    a,  # one\n    b=1,\n    d=4,\n)»\n", "g(\n    a,  # one\n    d=4,\n)\n", id="a line each"
        ),
        pytest.param("«g(\n    a,\n    b=1\n)»\n", "g(\n    a,\n)\n", id="a line each, no comma at the end"),
        pytest.param("«g(\n    b=-1,\n)»\n", "g(\n)\n", id="the only one, on its line"),
        pytest.param("x = «g(a, \\\n      b=tf.nn.relu)»\n", "x = g(a)\n", id="a backslash"),
        pytest.param(
            "«m.g('(', b=[1, (2)])(x).h(b=')', e=h(b=1))»\n", "m.g('(', b=[1, (2)])(x).h(e=h(b=1))\n", id="nested"
        ),
        pytest.param("é = «g('ü', b=1)»\n", "é = g('ü')\n", id="letters of two bytes"),
        pytest.param("@«d(b=1)»\ndef f():\n    pass\n", "@d()\ndef f():\n    pass\n", id="a decorator"),
        pytest.param(
            "class A:\n    x = «g(\n        a, b=1)»\n", "class A:\n    x = g(\n        a)\n", id="in a class"
        ),
    ],
)
def test_dropped(text: str, after: str, edited: Edited) -> None:
    names = "b,c" if "c=2" in text else "b"
    assert edited("drop-arguments", text, names=names) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("«g(a, b=flag)»\n", "the value of b comes from elsewhere"),
        ("«g(a, b=h())»\n", "the value of b comes from elsewhere"),
        ("«g(a, 1)»\n", "b is not given by name"),
        ("«g(a,  # why\n  b=1)»\n", "a comment speaks of the argument; read it, then remove both"),
        ("«g(\n    a,\n    b=1,  # why\n)»\n", "a comment speaks of the argument; read it, then remove both"),
        (
            "«g(\n    b=[\n        1,  # why\n    ],\n)»\n",
            "a comment speaks of the argument; read it, then remove both",
        ),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("drop-arguments", text, names="b") == reason
