"""rename-call: the new name, and every argument as the new method takes it."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_FIT = {"name": "fit", "positions": "generator,steps,epochs,workers", "renames": "generator:x", "gone": "workers"}


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("«m.fit_generator(g)»\n", "m.fit(g)\n", id="one argument"),
        pytest.param("«m.fit_generator(g, 10, 3)»\n", "m.fit(g, steps=10, epochs=3)\n", id="positions"),
        pytest.param("«m.fit_generator(generator=g, epochs=3)»\n", "m.fit(x=g, epochs=3)\n", id="a keyword"),
        pytest.param("«m.fit_generator(g, workers=4, epochs=3)»\n", "m.fit(g, epochs=3)\n", id="gone"),
        pytest.param(
            "h = «m.fit_generator(\n    (g),\n    # steps\n    len(g) // 2,  # half\n    **o\n)».history\n",
            "h = m.fit(\n    (g),\n    # steps\n    steps=len(g) // 2,  # half\n    **o\n).history\n",
            id="lines and comments",
        ),
        pytest.param(
            "hh = «m.fit_generator(g,\n                     # steps\n                     steps=2)»\n",
            "hh = m.fit(g,\n           # steps\n           steps=2)\n",
            id="aligned arguments stay aligned",
        ),
        pytest.param("«m.fit_generator(g,\n    steps=2)»\n", "m.fit(g,\n    steps=2)\n", id="others stay"),
        pytest.param("«m \\\n    .fit_generator (g)»\n", "m \\\n    .fit (g)\n", id="a backslash"),
    ],
)
def test_renamed(text: str, after: str, edited: Edited) -> None:
    assert edited("rename-call", text, **_FIT) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("«m.fit_generator(*a)»\n", "the call unpacks positional arguments"),
        ("«m.fit_generator(g, 1, 2, 4)»\n", "workers is given by position, and the new method does not take it"),
        ("«m.fit_generator(g, 1, 2, 4, 5)»\n", "the call has more arguments than the method took"),
        ("«m.fit_generator(g, workers=n)»\n", "the value of workers comes from elsewhere"),
        ("«fit_generator(g)»\n", "the call is no method of a chain"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("rename-call", text, **_FIT) == reason
