"""swap-methods: neighbours change places, and each keeps its arguments."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_APART = "the two stages are not neighbours in one chain"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "d = «‹d.batch(2)›.shuffle(3, seed=1)».p()\n", "d = d.shuffle(3, seed=1).batch(2).p()\n", id="a chain"
        ),
        pytest.param(
            "d = (\n    d\n    ‹.batch(2)›\n    «.shuffle(3)»  # mix\n)\n",
            "d = (\n    d\n    .shuffle(3)\n    .batch(2)  # mix\n)\n",
            id="lines",
        ),
        pytest.param(
            "d = d ‹.batch(2)› \\\n    «.shuffle(3)»\n", "d = d .shuffle(3) \\\n    .batch(2)\n", id="a backslash"
        ),
        pytest.param(
            "d = ‹d.batch(\n    2,\n)›\nd = «d.shuffle(3)»\n",
            "d = d.shuffle(3)\nd = d.batch(\n    2,\n)\n",
            id="statements",
        ),
        pytest.param(
            "d = ‹e.map(f).batch(2)›\nd = «d.shuffle(3)».repeat()\n",
            "d = e.map(f).shuffle(3)\nd = d.batch(2).repeat()\n",
            id="ends of statements",
        ),
    ],
)
def test_swapped(text: str, after: str, edited: Edited) -> None:
    assert edited("swap-methods", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("d = «‹d.batch(2)›.map(f).shuffle(3)»\n", _APART),
        ("d = ‹d.batch(2)›\nshow(d)\nd = «d.shuffle(3)»\n", _APART),
        ("d = ‹d.batch(2)›\ne = «d.shuffle(3)»\n", _APART),
        ("d = ‹d.batch(2)›\nif x:\n    d = «d.shuffle(3)»\n", _APART),
        ("d = wrap(‹d.batch(2)›)\nd = «d.shuffle(3)»\n", _APART),
        (
            "d = (\n    d\n    ‹.batch(2)›  # two\n    «.shuffle(3)»\n)\n",
            "a comment stands between the two stages",
        ),
        ("d = ‹d.batch(2)›\n# mix\nd = «d.shuffle(3)»\n", "a comment stands between the two stages"),
    ],
)
def test_declined(text: str, reason: str, edited: Edited) -> None:
    assert edited("swap-methods", text) == reason
