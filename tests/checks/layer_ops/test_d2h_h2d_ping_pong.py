from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import evidence_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Copies, Evidence, Placement, Spot

Rule = Callable[[str], Check]
RULE = "d2h-h2d-ping-pong"


def _evidence(trips: float, ms: float, op: str = "", **parts: object) -> Evidence:
    copies = Copies(1e6, 1e6, trips, trips, round_trips=trips, round_trip_ms=ms, round_trip_op=op)
    return evidence_of(gpu=True, buckets={"device_compute": 10.0 - ms, "host": ms}, copies=copies, **parts)


@pytest.mark.parametrize(
    ("trips", "ms", "told"),
    [(1, 0.6, True), (1, 0.4, False), (2, 0.4, True), (2, 0.2, False), (0, 0.0, False)],
)
def test_one_trip_counts_from_five_percent_on_two_from_three(
    rule: Rule, trips: float, ms: float, told: bool
) -> None:
    found = list(rule(RULE).observe(_evidence(trips, ms)))
    assert [finding.verdict for finding in found] == ([Verdict.OBSERVED] if told else [])


def test_names_the_op_and_its_lines(rule: Rule) -> None:
    placements = (
        Placement("Unique", 1, "cpu", False, Spot("model.py", 14)),
        Placement("Unique", 1, "cpu", False, Spot("data.py", 3), in_step=False),
        Placement("Where", 1, "cpu", False, Spot("model.py", 20)),
    )
    (finding,) = rule(RULE).observe(_evidence(1, 2.0, "Unique", placements=placements))

    assert "20% of the step" in finding.message
    assert "Unique takes to the host" in finding.message
    assert [(each.location.path, each.location.line) for each in finding.related] == [("model.py", 14)]
    assert finding.impact is not None
    assert finding.impact.step_share == pytest.approx(0.2)


def test_without_a_gpu_nothing_goes_back_and_forth(rule: Rule) -> None:
    copies = Copies(round_trips=4, round_trip_ms=5.0)
    assert list(rule(RULE).observe(evidence_of(copies=copies))) == []
