"""drop-statement: a statement goes with its line, and what is said of it keeps it."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_COMMENT = "a comment says why it is there; read it, then remove both"
_SHARED = "the statement shares its line with another; part them"
_MORE = "the statement does more than that, or takes its value from elsewhere"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("a()\n«g(True)»\nb()\n", "a()\nb()\n", id="a call"),
        pytest.param("a()\n«m.eager = True»\n", "a()\n", id="an attribute"),
        pytest.param("a()\n«os.environ['X'] = '1'»\n", "a()\n", id="a setting"),
        pytest.param("a()\n«g(True)»", "a()\n", id="no line end at the end of the file"),
        pytest.param("a()\n«g(\n    True,\n)»\nb()\n", "a()\nb()\n", id="three lines"),
        pytest.param("def f():\n    a()\n    «g(True)»\n", "def f():\n    a()\n", id="in a function"),
        pytest.param("x = '''\n'''\n«g('#')»\n", "x = '''\n'''\n", id="a sign in a string is no comment"),
        pytest.param(
            "a()\n«g(True)»\n# of b\nb()\n", "a()\n# of b\nb()\n", id="the comment of the next line stays"
        ),
    ],
)
def test_dropped(text: str, after: str, edited: Edited) -> None:
    assert edited("drop-statement", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a()\n«g(True)»  # for the demo\n", _COMMENT),
        ("a()\n# for the demo\n«g(True)»\n", _COMMENT),
        ("a()\n«g(\n    True,  # now\n)»\n", _COMMENT),
        ("a(); «g(True)»\n", _SHARED),
        ("«g(True)»; a()\n", _SHARED),
        ("a()\nif a: «g(True)»\n", _SHARED),
        ("a()\nif a:\n    «g(True)»\n", "its block holds nothing else; remove the block"),
        ("a()\nx = «g(True)»\n", _MORE),
        ("a()\nh(«g(True)»)\n", _MORE),
        ("a()\n«m.eager = flag»\n", _MORE),
        ("a()\n«m.eager = n.eager = True»\n", _MORE),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("drop-statement", text) == reason
