"""Hosts side by side in text and data."""

from __future__ import annotations

from dataclasses import replace

from tests.report.conftest import evidence
from tflint_gpu.report.headline import headline
from tflint_gpu.report.hosts import HEADERS, as_data, rows, slowest
from tflint_gpu.report.traced import summary
from tflint_gpu.trace.usage import HostUse

EARLY = HostUse("a:1", 9, 10.0, 0.05, 1.0, 7.0, 2, 0.5)
LATE = HostUse("b:1", 9, 10.0, None, 6.0, 1.0)


def test_the_table_has_a_row_a_host_and_dashes_for_what_is_not_known() -> None:
    joined = evidence(hosts=(EARLY, LATE))
    assert rows(joined) == [
        ["a:1", "9", "10", "5 %", "1", "7", "3", "0.5"],
        ["b:1", "9", "10", "-", "6", "1", "9", "-"],
    ]
    text = "\n".join(summary(joined))
    assert all(header in text for header in HEADERS)


def test_the_headline_names_the_host_that_holds_the_others_up() -> None:
    joined = evidence(hosts=(EARLY, LATE))
    assert slowest(joined) == "b:1 is the slowest of 2 hosts: the other waits 60 % of the step for it"
    assert slowest(joined) in headline(joined, [])
    three = evidence(hosts=(EARLY, EARLY, LATE))
    assert "the others wait" in slowest(three)


def test_hosts_that_keep_pace_are_no_news() -> None:
    even = evidence(hosts=(EARLY, replace(EARLY, name="b:1")))
    assert slowest(even) == ""
    assert slowest(evidence()) == ""


def test_data_for_programs() -> None:
    told = as_data(evidence(hosts=(EARLY, LATE)))
    assert told["hosts"][0]["own_ms"] == 3.0
    assert told["slowest_host"] == {"name": "b:1", "wait_share": 0.6}
    assert as_data(evidence()) == {"hosts": [], "slowest_host": None}
