"""A Python number becomes a tensor only where the function cannot tell the two apart."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tests.checks.snippets import SETUP

LOOP = "for i, (x, y) in enumerate(ds):\n    step(x, {given})\n"


@pytest.mark.parametrize(
    ("given", "body", "reason"),
    [
        ("i / 100", "return n * x", None),
        ("0.5 * i", "loss = x - n\n    return loss", None),
        ("i", "return tf.cast(n, tf.float32) * x", None),
        ("i / 100", "return tf.multiply(n, x)", None),
        ("i", "return n * x", "beside tensors of a type"),
        ("i / 100", "return x[n]", "uses n as a Python number"),
        ("i / 100", "return x if n > 3 else -x", "uses n as a Python number"),
        ("i / 100", "m = 1 - n\n    return m * x", "uses n as a Python number"),
        ("i / 100", "print(n)\n    return x", "uses n as a Python number"),
        ("i / 100", "n = n + 1\n    return n * x", "gives n another value"),
        ("i / 100", "return x", "does not use n"),
        ("i / 100", "return tf.cast(x, tf.float64) * n", "beside tensors of a type"),
    ],
)
def test_number_to_tensor(analyse: Analyse, given: str, body: str, reason: str | None) -> None:
    step = f"@tf.function\ndef step(x, n):\n    {body}\n"
    (finding,) = named(analyse(SETUP + step + LOOP.format(given=given)), "function-retracing")

    if reason is None:
        assert finding.fix is not None
        assert finding.fix.safety == "safe"
        assert [change.kind for change in finding.fix.changes] == ["rewrite"]
    else:
        assert finding.fix is None
        assert reason in finding.unfixable
