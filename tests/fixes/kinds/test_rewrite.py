"""rewrite: an expression is written differently, whatever stands around it."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_HEAD = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("text", "new", "after"),
    [
        pytest.param("f(a, «i»)\n", "{tensorflow.constant}($)", "f(a, tf.constant(i))\n", id="around a name"),
        pytest.param("f(«n=i + 1»)\n", "{tensorflow.constant}($)", "f(n=tf.constant(i + 1))\n", id="a keyword"),
        pytest.param("f(«n = (i)», k=1)\n", "[$]", "f(n = ([i]), k=1)\n", id="a keyword in parentheses"),
        pytest.param("d.p(\n    «64»,  # many\n)\n", "0", "d.p(\n    0,  # many\n)\n", id="a comment beside it"),
        pytest.param(
            "f(«(\n    i\n    + 1\n)[0]»)\n", "g($)", "f(g((\n    i\n    + 1\n)[0]))\n", id="several lines"
        ),
        pytest.param("f(«lambda x: x»)\n", "h($)", "f(h(lambda x: x))\n", id="a lambda"),
        pytest.param("ä = f('ö', «i»)\n", "-$", "ä = f('ö', -i)\n", id="letters of two bytes"),
    ],
)
def test_rewritten(text: str, new: str, after: str, edited: Edited) -> None:
    assert edited("rewrite", _HEAD + text, text=new) == _HEAD + after


def test_name_of_another_place(edited: Edited) -> None:
    text = "s = ‹M()›\nd.batch(«32»)\n"
    assert edited("rewrite", text, text="$ * @.n", literal="yes") == "s = M()\nd.batch(32 * s.n)\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s = ‹M()›\nd.batch(«n»)\n", "the value comes from elsewhere; change it there"),
        ("s = ‹M()›\nd.batch(«2 * n»)\n", "the value comes from elsewhere; change it there"),
        ("‹M()›\nd.batch(«32»)\n", "what is made there has no name of its own"),
        ("s = ‹M()›\ns = s or t\nd.batch(«32»)\n", "s is set in several places"),
        ("def f():\n    s = ‹M()›\nd.batch(«32»)\n", "s is out of reach here"),
        ("d.batch(«32»)\ns = ‹M()›\n", "s is out of reach here"),
        ("class A:\n    s = ‹M()›\n    def f(self):\n        d.batch(«32»)\n", "s is out of reach here"),
        ("s = ‹M()›\nd.batch(«32»)  # a GPU\n", "a comment explains the value; read it first"),
        ("s = ‹M()›\nd.batch(«(\n    1, # one\n)»)\n", "a comment stands inside the expression"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    new = "@" if "# one" in text else "$ * @.n"
    assert edited("rewrite", text, text=new, literal="yes") == reason


def test_quotes_are_those_of_the_file(edited: Edited) -> None:
    assert edited("rewrite", "a = 'x'\nf(s=«30»)\n", text='"epoch"') == "a = 'x'\nf(s='epoch')\n"
    assert edited("rewrite", 'a = "x"\nf(s=«30»)\n', text='"epoch"') == 'a = "x"\nf(s="epoch")\n'
