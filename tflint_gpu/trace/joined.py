"""Several evidence files as one: each judges for itself, and runs of one program stand side by side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

from tflint_gpu.trace.assemble import spread
from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.usage import HostUse


def join(files: Mapping[str, Evidence]) -> Evidence:
    """Return the first of `files` (by name, at least one) with the others behind it; equal ones count once.

    Where others are of the same program, on other hosts or traced again, and the first knows no hosts by itself,
    these runs are its hosts, by the names of their files.
    """
    names: list[str] = []
    found: list[Evidence] = []
    for name, evidence in files.items():
        if evidence not in found:
            names.append(name)
            found.append(evidence)
    first, *others = found
    same = [
        (name, evidence)
        for name, evidence in zip(names, found, strict=True)
        if evidence.command == first.command and evidence.saw_steps
    ]
    hosts = first.hosts or (tuple(_as_host(*run) for run in same) if len(same) > 1 else ())
    return replace(first, hosts=hosts, others=tuple(others))


def _as_host(name: str, evidence: Evidence) -> HostUse:
    steps = evidence.steps
    times = [step.step_ms for step in steps]
    return HostUse(
        name,
        len(steps),
        statistics.fmean(times),
        spread(times),
        statistics.fmean(step.buckets.get("input_wait", 0.0) for step in steps),
        statistics.fmean(step.buckets.get("collectives", 0.0) for step in steps),
    )
