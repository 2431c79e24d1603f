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
    """Return in one sentence how many of `findings` can be fixed at most, and how; "" where none can.

    Whether a fix holds is seen only when it is made and the result linted again, which a report does not do.
    """
    safeties = [finding.fix.safety for finding in findings if finding.fix and offered(finding)]
    safe = safeties.count("safe")
    unsafe = len(safeties) - safe
    if not safe:
        return (
            f"{_at_most(unsafe)} be fixed with --unsafe-fixes; --diff --unsafe-fixes shows how." if unsafe else ""
        )
    more = f" ({unsafe} more with --unsafe-fixes)" if unsafe else ""
    return f"{_at_most(safe)} be fixed with --fix{more}; --diff shows how."


def _at_most(count: int) -> str:
    return f"up to {count} can" if count > 1 else f"{count} may"
