"""How a measured share becomes a verdict: the one line between confirmed and minor, and what-ifs as proof."""

from __future__ import annotations

import math

from tflint_gpu.checks.check import Judgement
from tflint_gpu.findings import Impact, Location, Measure, Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, WhatIf

#: Below this share of the step a true cause is not worth anybody's time.
MINOR_SHARE = 0.03


def weigh(
    share: float,
    metric: str,
    basis: str,
    *measures: Measure,
    severity: Severity | None = None,
    message: str | None = None,
) -> Judgement:
    """Judge a cause by the `share` (0..1) of the step that it costs: confirmed from 3 % on, else minor.

    `metric` names the share among the figures, `basis` says how it is known; `measures` are further figures.
    """
    figures = (Measure(metric, round(share, 4)), *measures)
    if share < MINOR_SHARE:
        return Judgement(Verdict.MINOR, figures)
    return Judgement(Verdict.CONFIRMED, figures, Impact(round(share, 4), basis), severity, message)


def by_experiment(
    result: WhatIf | None, severity: Severity | None = None, message: str | None = None
) -> Judgement | None:
    """Judge a cause by the run without it; None where there was no such run or its noise hides the answer.

    A gain is confirmed (minor under 3 %). Without a gain the cause is refuted once the upper end of the interval
    is below 3 % too: a wide interval around one proves nothing.
    """
    if result is None:
        return None
    measures = _figures(result)
    if result.gain:
        share = result.saved_share
        return weigh(share, "saved_share", result.basis, *measures, severity=severity, message=message)
    return Judgement(Verdict.REFUTED, measures) if result.most_saved < MINOR_SHARE else None


def by_repair(result: WhatIf | None, severity: Severity | None = None) -> Judgement | None:
    """Judge a cause by the run with its own repair, which has the last word; None where there was no such run.

    A repair that was tried and gained nothing measurable leaves the cause unmeasured at best: no other figure
    confirms it.
    """
    judged = by_experiment(result, severity)
    if judged is not None or result is None:
        return judged
    reason = f"the run with the change ({result.change}) gained nothing beyond its noise"
    return Judgement(Verdict.UNMEASURED, _figures(result), reason=reason)


def with_larger_batch(evidence: Evidence, most: float = math.inf) -> WhatIf | None:
    """Return the run with a larger batch that tells most: of those that gain the best, else the largest.

    Batches more than `most` times as large are left aside; None where no other was tried.
    """
    tried = [result for result in evidence.what_if if 1 < result.factor <= most]
    gains = [result for result in tried if result.gain]
    best = max(gains, key=lambda result: result.low, default=None)
    return best or max(tried, key=lambda result: result.factor, default=None)


def _figures(result: WhatIf) -> tuple[Measure, ...]:
    return (
        Measure("speedup", round(result.speedup, 3)),
        Measure("speedup_low", round(result.low, 3)),
        Measure("speedup_high", round(result.high, 3)),
        Measure("repeats", result.repeats),
    )


def share_of_step(milliseconds: float | None, evidence: Evidence) -> float | None:
    """Return `milliseconds` per step as a share of the step, at most 1; None where either is not known."""
    step = evidence.step_ms
    if milliseconds is None or not step:
        return None
    return min(1.0, milliseconds / step)


def share_of_mean_step(milliseconds: float | None, evidence: Evidence) -> float | None:
    """Return `milliseconds` per step as a share of the mean step: for costs that come at every few steps only."""
    step = (evidence.window.mean_ms if evidence.window else None) or evidence.step_ms
    if milliseconds is None or not step:
        return None
    return min(1.0, milliseconds / step)


def place_of(evidence: Evidence) -> Location:
    """Return where a finding about the step as a whole stands: the line that drives it, else the traced script."""
    spot = evidence.window.spot if evidence.window else None
    if spot is not None:
        return Location(spot.path, spot.line, cell=spot.cell)
    scripts = [word for word in evidence.command if word.endswith((".py", ".ipynb"))]
    return Location((scripts or list(evidence.command) or ["."])[-1 if not scripts else 0], 1)


def without_overhead(share: float, evidence: Evidence) -> float:
    """Return `share` of the profiled step as a share of the plain step, less what profiling added to it.

    The profiler slows the host, above all where kernels are small: host-side time is over-read by as much as
    profiled steps are longer than plain ones.
    """
    if not evidence.steps or not evidence.step_ms:
        return share
    profiled = sum(step.step_ms for step in evidence.steps) / len(evidence.steps)
    added = max(0.0, profiled - evidence.step_ms)
    return max(0.0, share * profiled - added) / max(profiled - added, 1e-9)
