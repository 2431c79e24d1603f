"""Findings and errors survive the way through JSON."""

from __future__ import annotations

import json

import pytest

from tflint_gpu.findings import (
    Change,
    Finding,
    Fix,
    Impact,
    Location,
    Measure,
    Related,
    Severity,
    Verdict,
)
from tflint_gpu.lint.records import MALFORMED, error_of, error_record, finding_of, record_of
from tflint_gpu.source.texts import Error

WHERE = Location("a/ü.ipynb", 3, 4, 5, 6, cell=2)
PLAIN = Finding("TFG101", "missing-prefetch", "input-pipeline", Severity.HINT, "“waits” \ud800", WHERE)
FULL = Finding(
    "TFG101",
    "missing-prefetch",
    "input-pipeline",
    Severity.ERROR,
    "waits",
    WHERE,
    Verdict.CONFIRMED,
    (Related(Location("b.py", 1), "made here"),),
    (Measure("input_wait_share", 0.1, "1"),),
    Impact(0.3, "trace"),
    Fix("safe", "append", (Change("append", WHERE, (("call", "prefetch(1)"),), (WHERE,)),)),
    "waits for nothing",
    "a CPU does not show it",
    "Trainer.fit",
)


@pytest.mark.parametrize("finding", [PLAIN, FULL], ids=["plain", "full"])
def test_a_finding_comes_back_as_it_was(finding: Finding) -> None:
    back = finding_of(json.loads(json.dumps(record_of(finding))))
    assert back == finding
    assert hash(back) == hash(finding)


def test_an_error_comes_back_as_it_was() -> None:
    error = Error("a.py", 3, "not Python", 2, fatal=False)
    assert error_of(json.loads(json.dumps(error_record(error)))) == error


@pytest.mark.parametrize("record", [[], None, 3, ["TFG101"], {}, [None] * 13])
def test_what_is_no_record_is_refused(record: object) -> None:
    with pytest.raises(MALFORMED):
        finding_of(record)  # type: ignore[arg-type]
