"""What the fixes offer: how many findings can be repaired, and by which flag."""

from __future__ import annotations

from collections.abc import Iterable

from tflint_gpu.findings import Finding, Verdict

#: Where the trace said that a fix would change nothing, none is offered.
NOTHING_TO_GAIN = frozenset({Verdict.REFUTED, Verdict.MASKED})


def offered(finding: Finding) -> bool:
    """Say whether the report offers the fix of `finding`."""
    return finding.fix is not None and finding.verdict not in NOTHING_TO_GAIN


def offer(findings: Iterable[Finding]) -> str:
    """Return in one sentence how many of `findings` can be fixed, and how; "" where none can."""
    safeties = [finding.fix.safety for finding in findings if finding.fix and offered(finding)]
    safe = safeties.count("safe")
    unsafe = len(safeties) - safe
    if not safe:
        return f"{unsafe} can be fixed with --unsafe-fixes; --diff --unsafe-fixes shows how." if unsafe else ""
    more = f" ({unsafe} more with --unsafe-fixes)" if unsafe else ""
    return f"{safe} can be fixed with --fix{more}; --diff shows how."
