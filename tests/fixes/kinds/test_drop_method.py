"""drop-method: one method leaves its chain."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_COMMENT = "a comment speaks of the stage; read it, then remove both"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("d = «d.a().p(1)».b()\n", "d = d.a().b()\n", id="in the middle"),
        pytest.param("d = «e.p(1)»\n", "d = e\n", id="all there is, of another name"),
        pytest.param(
            "d = d.a()\nd = «d.p(1)»\nd = d.b()\n", "d = d.a()\nd = d.b()\n", id="a statement of its own"
        ),
        pytest.param(
            "d = (\n    d.a()  # one\n    «.p(1)»\n    .b()\n)\n",
            "d = (\n    d.a()  # one\n    .b()\n)\n",
            id="lines",
        ),
        pytest.param("d = d.a() \\\n    «.p(1)» \\\n    .b()\n", "d = d.a() \\\n    .b()\n", id="backslashes"),
        pytest.param("d = «(d).p(\n    1,\n)».b()\n", "d = (d).b()\n", id="parentheses, several lines"),
        pytest.param("«d.p (1)».b()\n", "d.b()\n", id="a blank before the arguments"),
        pytest.param("f(«g(x).p('.')»)\n", "f(g(x))\n", id="on a call"),
        pytest.param("d = «d.p(1)».b()  # kept\n", "d = d.b()  # kept\n", id="a comment of the line"),
    ],
)
def test_dropped(text: str, after: str, edited: Edited) -> None:
    assert edited("drop-method", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("d = (\n    d.a()\n    «.p(1)»  # ahead\n    .b()\n)\n", _COMMENT),
        ("d = (\n    d.a()\n    # ahead\n    «.p(1)»\n    .b()\n)\n", _COMMENT),
        ("d = «d.p(\n    1,  # one\n)».b()\n", _COMMENT),
        ("d = d.a()\n# ahead\nd = «d.p(1)»\n", "a comment says why it is there; read it, then remove both"),
        ("d = «p(d)»\n", "the call is no method of a chain"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("drop-method", text) == reason
