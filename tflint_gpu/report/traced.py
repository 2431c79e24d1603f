"""The trace in text: how the step was measured, what it is made of, what would change it, what runs on the CPU."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from tflint_gpu.report import hosts
from tflint_gpu.report.figures import QUARTILES, digits, milliseconds, percent, samples_a_second, scatter, size
from tflint_gpu.trace.evidence import (
    BUCKETS,
    Evidence,
    Losses,
    Placement,
    Samples,
    Spot,
    VerifiedFix,
    WhatIf,
    Window,
)

#: Rows of the placement table; a model without GPU kernels would fill screens.
_MOST_PLACEMENTS = 10


def summary(evidence: Evidence) -> list[str]:
    """Return the trace's summary as lines of text, without its headline."""
    parts = [_setting(evidence), _breakdown(evidence), _hosts(evidence), _what_if(evidence), _verified(evidence)]
    parts += [_placements(evidence), list(_remarks(evidence))]
    lines: list[str] = []
    for part in parts:
        if part:
            lines += [*([""] if lines else []), *part]
    return lines


def _setting(evidence: Evidence) -> list[str]:
    device, versions = evidence.environment.device, evidence.environment
    named = [
        f"{name} {version}"
        for name, version in (("TensorFlow", versions.tensorflow), ("Keras", versions.keras))
        if version
    ]
    count = f"{device.count} × " if device.count > 1 else ""
    kind = "" if device.kind in device.name.lower() else f" ({device.kind.upper()})"
    lines = [", ".join([f"{count}{device.name}{kind}", *named])]
    if window := evidence.window:
        lines += [_window(evidence, window)] if window.seen_as != "time" else []
        lines += [window.note] if window.note else []
    return lines


def _window(evidence: Evidence, window: Window) -> str:
    place = f" ({_place(window.spot)})" if window.spot else ""
    return (
        f"{milliseconds(window.step_ms)} a step{_rate(evidence)}: median of n = {window.steps} steps of "
        f"{window.seen_as}{place} after {window.warmup_steps} to warm up"
        f"{scatter(window.steps, window.spread)}"
    )


def _rate(evidence: Evidence) -> str:
    rate = evidence.samples_per_second
    return "" if rate is None else f", {digits(rate)} samples a second"


def _breakdown(evidence: Evidence) -> list[str]:
    steps = evidence.steps
    rows = []
    for bucket in BUCKETS:
        times = [step.buckets.get(bucket, 0.0) for step in steps]
        share = evidence.share(bucket) or 0.0
        if share >= 0.001:
            rows.append((share, [bucket.replace("_", " "), _mean(times), percent(share), _spread(times)]))
    rows.sort(key=lambda row: -row[0])
    if not rows:
        return []
    title = f"step (n = {len(steps)})" if evidence.saw_steps else "time"
    return _table([row for _, row in rows], [title, "ms", "share", "spread"])


def _hosts(evidence: Evidence) -> list[str]:
    listed = hosts.rows(evidence)
    return _table(listed, hosts.HEADERS) if listed else []


def _what_if(evidence: Evidence) -> list[str]:
    memory = "GPU memory" if evidence.environment.device.kind == "gpu" else "process memory"
    headers = ["what if", "ms before", "ms after", "samples/s", "speed", "95 % interval", "n"]
    headers += ["GPU busy", memory, ""]
    rows = [
        [
            result.change,
            digits(result.baseline_ms),
            digits(result.step_ms),
            samples_a_second(result),
            f"{result.speedup:.2f} ×",
            f"{result.low:.2f}–{result.high:.2f}",
            str(result.repeats),
            "" if (busy := evidence.busy_share_with(result)) is None else percent(busy),
            _peaks(result),
            "; ".join(filter(None, (_in_words(result), result.note))),
        ]
        for result in evidence.what_if
    ]
    # What nobody knows takes no room.
    kept = [at for at, header in enumerate(headers) if not header or any(row[at] for row in rows)]
    return _table([[row[at] for at in kept] for row in rows], [headers[at] for at in kept]) if rows else []


def _peaks(result: WhatIf) -> str:
    if result.peak_bytes is None or result.baseline_peak_bytes is None:
        return ""
    return f"{size(result.baseline_peak_bytes)} → {size(result.peak_bytes)}"


def _verified(evidence: Evidence) -> list[str]:
    """Return the table of the fixes that were tried."""
    rows = []
    for fix in evidence.verified_fixes:
        figures = ["", "", "", "", ""]
        if result := fix.result:
            interval = f"{result.low:.2f}–{result.high:.2f}"
            times = [digits(result.baseline_ms), digits(result.step_ms)]
            figures = [*times, f"{result.speedup:.2f} ×", interval, str(result.repeats)]
        rows.append([f"{fix.code} {fix.name}", *figures, outcome(fix)])
    headers = ["with the fix of", "ms before", "ms after", "speed", "95 % interval", "n", ""]
    return _table(rows, headers) if rows else []


def outcome(fix: VerifiedFix) -> str:
    """Return in words what trying a fix has shown of time and losses."""
    if fix.result is None:
        return fix.note
    if fix.helpful:
        told = f"gives back {percent(fix.result.saved_share)} of the step"
    elif fix.result.high < 1:
        told = "not helpful: slower"
    else:
        told = "not helpful: no gain beyond the noise"
    wrong = fix.safety == "safe" and fix.losses is not None and not fix.losses.agree
    losses = f"{'do not make it, it is not safe here: ' if wrong else f'{told}; '}{_on_losses(fix.losses)}"
    return f"{losses}; {fix.note}" if fix.note else losses


def _on_losses(losses: Losses | None) -> str:
    if losses is None:
        return "no losses of the same steps to compare"
    first = f"of the first {losses.steps[-1]} steps"
    if losses.agree and losses.noise > losses.difference > 1e-3:
        return f"losses {first} agree within what they differ from run to run ({percent(losses.noise)})"
    if losses.agree:
        return f"losses {first} agree"
    return f"losses {first} differ by up to {percent(losses.difference)}"


def _in_words(result: WhatIf) -> str:
    if result.gain:
        return f"gives back {percent(result.saved_share)} of the step{_but(result)}"
    return "slower" if result.high < 1 else "no difference beyond the noise"


def _but(result: WhatIf) -> str:
    """Return what of a change that gains is not tested, or different."""
    if result.factor > 1:
        return "; convergence is not tested"
    return "; Python in the step runs once" if result.change == "tf-function" else ""


def _placements(evidence: Evidence) -> list[str]:
    """Return the ops of the step that have no place on the GPU, dearest first."""
    ops = [item for item in evidence.placements if item.device == "cpu" and item.in_step and item.reason]
    ops.sort(key=lambda item: (item.spot is None, -(item.ms or 0.0), -item.count, item.op))
    rows = [_placement_row(item) for item in ops[:_MOST_PLACEMENTS]]
    if not rows:
        return []
    how = "would run on the CPU" if all(item.predicted for item in ops) else "runs on the CPU"
    more = len(ops) - len(rows)
    return [
        *_table(rows, [how, "times", "line", "ms", "why"]),
        *([f"… and {more} more, all of them in --output-format json"] if more else []),
    ]


def _placement_row(item: Placement) -> list[str]:
    spot = _place(item.spot) if item.spot else "not of your code"
    predicted = " (predicted)" if item.predicted else ""
    return [item.op, str(item.count), spot, "" if item.ms is None else digits(item.ms), item.reason + predicted]


def _remarks(evidence: Evidence) -> Iterator[str]:
    if evidence.samples:
        yield _samples(evidence.samples)
    if evidence.muted:
        yield f"not carried out during the trace: {', '.join(evidence.muted)}"
    yield from evidence.notes


def _samples(samples: Samples) -> str:
    if not samples.count:
        return samples.note or "GPU counters were not sampled."
    figures = [f"{samples.count} samples of the GPU's own counters"]
    if samples.gpu_util is not None:
        figures.append(f"utilization {percent(samples.gpu_util)}")
    if samples.memory_used_bytes is not None and samples.memory_total_bytes:
        figures.append(f"memory {size(samples.memory_used_bytes)} of {size(samples.memory_total_bytes)}")
    if samples.power_w is not None:
        figures.append(f"power {digits(samples.power_w)} W")
    if samples.throttled:
        figures.append(f"slowed down by {', '.join(samples.throttled)}")
    if samples.other_processes:
        figures.append(f"shared with {samples.other_processes} other processes")
    return ", ".join(figures) + (f" ({samples.note})" if samples.note else "")


def _place(spot: Spot) -> str:
    cell = f":cell {spot.cell}" if spot.cell is not None else ""
    return f"{spot.path}{cell}:{spot.line}"


def _mean(times: Sequence[float]) -> str:
    return digits(statistics.fmean(times))


def _spread(times: Sequence[float]) -> str:
    """Return the interquartile range over the median, which a few odd steps do not move."""
    middle = statistics.median(times)
    if len(times) < QUARTILES or not middle:
        return ""
    low, _, high = statistics.quantiles(times, n=4)
    return percent((high - low) / middle)


def _table(rows: Iterable[Sequence[str]], headers: Sequence[str]) -> list[str]:
    from tabulate import tabulate

    text = tabulate(list(rows), headers, tablefmt="simple", disable_numparse=True)
    return [line.rstrip() for line in text.split("\n")]
