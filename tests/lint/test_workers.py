"""How many processes pay."""

from __future__ import annotations

import pytest

from tflint_gpu.lint import workers


@pytest.mark.parametrize(
    ("lines", "jobs"),
    [
        ([], 1),
        ([29_999], 1),
        ([10_000, 10_000], 1),
        ([300_000], 1),
        ([300_000, 14_000], 1),
        ([300_000, 20_000], 2),
        ([20_000, 20_000], 2),
        ([20_000] * 5, 4),
        ([100] * 1000, 4),
    ],
)
def test_a_process_must_have_enough_to_do(monkeypatch: pytest.MonkeyPatch, lines: list[int], jobs: int) -> None:
    monkeypatch.setattr(workers, "_cores", lambda: 4)
    assert workers.useful_jobs(lines) == jobs
