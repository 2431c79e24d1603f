"""insert-statement: a line more, before a statement or first in its block."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited


@pytest.mark.parametrize(
    ("text", "where", "after"),
    [
        pytest.param("a()\n«m = f(\n    1)»\n", "", "a()\nnew('x')\nm = f(\n    1)\n", id="before"),
        pytest.param(
            "if a:\n    # m\n    m = «f()»\n", "", "if a:\n    # m\n    new('x')\n    m = f()\n", id="in a block"
        ),
        pytest.param(
            "«@d\ndef f():\n    pass»\n", "", "new('x')\n@d\ndef f():\n    pass\n", id="before a decorator"
        ),
        pytest.param(
            "«for x in y:»\n    # a\n    a()\n",
            "inside",
            "for x in y:\n    # a\n    new('x')\n    a()\n",
            id="loop",
        ),
        pytest.param(
            "«def f():\n    '''Say.'''\n    a()»\n",
            "inside",
            "def f():\n    '''Say.'''\n    new('x')\n    a()\n",
            id="behind a docstring",
        ),
        pytest.param(
            "«def f():\n    '''Say.'''»",
            "inside",
            "def f():\n    '''Say.'''\n    new('x')\n",
            id="a docstring alone",
        ),
    ],
)
def test_inserted(text: str, where: str, after: str, edited: Edited) -> None:
    parameters = {"where": where} if where else {}
    assert edited("insert-statement", text, text="new('x')", **parameters) == after


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("a(); «b()»\n", "", "the statement shares its line with another; part them"),
        ("«for x in y: a()»\n", "inside", "the block shares a line with its head"),
        ("«a()»\n", "inside", "the block shares a line with its head"),
    ],
)
def test_declined(text: str, where: str, reason: str, edited: Edited) -> None:
    parameters = {"where": where} if where else {}
    assert edited("insert-statement", text, text="new('x')", **parameters) == reason
