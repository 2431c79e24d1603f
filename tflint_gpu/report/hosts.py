"""The hosts of a run side by side: what each did in a step, and which of them the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflint_gpu.report.figures import digits, percent
from tflint_gpu.trace.evidence import straggler

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence
    from tflint_gpu.trace.usage import HostUse

#: A host that the others wait for less than this of the step is no news.
_WORTH_SAYING = 0.03


def rows(evidence: Evidence) -> list[list[str]]:
    """Return one row a host, in the order of `HEADERS`; none where the run had one host."""
    return [_row(host) for host in evidence.hosts]


HEADERS = ("host", "steps", "step ms", "spread", "input ms", "for others ms", "own ms", "thrown-away input ms")


def _row(host: HostUse) -> list[str]:
    times = [host.step_ms, host.input_ms, host.collective_ms, host.own_ms, host.thrown_away_ms]
    step, waiting, others, own, thrown = ("-" if ms is None else digits(ms) for ms in times)
    spread = "-" if host.spread is None else percent(host.spread)
    return [host.name, str(host.steps), step, spread, waiting, others, own, thrown]


def slowest(evidence: Evidence) -> str:
    """Return, as a sentence without its end, which host the others wait for; "" where they hardly do."""
    found = straggler(evidence.hosts)
    if found is None or found.share < _WORTH_SAYING:
        return ""
    count = len(evidence.hosts)
    others = "the other waits" if count == 2 else "the others wait"
    return f"{found.name} is the slowest of {count} hosts: {others} {percent(found.share)} of the step for it"


def as_data(evidence: Evidence) -> dict[str, Any]:
    """Return the hosts as plain data for the format ``json``."""
    found = straggler(evidence.hosts)
    return {
        "hosts": [
            {
                "name": host.name,
                "steps": host.steps,
                "step_ms": host.step_ms,
                "spread": host.spread,
                "input_ms": host.input_ms,
                "collective_ms": host.collective_ms,
                "own_ms": host.own_ms,
                "shards": host.shards,
                "thrown_away_ms": host.thrown_away_ms,
            }
            for host in evidence.hosts
        ],
        "slowest_host": found and {"name": found.name, "wait_share": found.share},
    }
