"""The trace in one sentence: how busy the device was, what it waited for and where, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tflint_gpu.findings import Finding, Verdict
from tflint_gpu.report.figures import percent, samples_a_second
from tflint_gpu.report.hosts import slowest

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, WhatIf

#: What the step does in a bucket, and the factors whose findings name its cause.
_WAITS = {
    "input_wait": ("waits for input", ("input-pipeline",)),
    "launch": ("goes into launching kernels", ("graph", "batch-size", "layer-ops")),
    "host": ("runs on the host", ("graph", "environment", "layer-ops", "model")),
    "host_to_device": ("copies to the GPU", ("input-pipeline", "graph", "layer-ops")),
    "device_to_host": ("copies back from the GPU", ("graph", "layer-ops", "environment")),
    "collectives": ("goes into exchanging gradients", ("multi-gpu",)),
    "compile": ("compiles", ("graph",)),
    "unknown": ("is not accounted for", ()),
}

#: Below this share of the step a wait is not worth a place in the headline: the line between confirmed and minor.
_WORTH_SAYING = 0.03

_CHANGES = {
    "cached-batch": "One cached batch runs {speedup} × faster",
    "batch-x2": "A batch twice as large gives {speedup} × the samples a second",
    "batch-x4": "A batch four times as large gives {speedup} × the samples a second",
    "batch-x8": "A batch eight times as large gives {speedup} × the samples a second",
    "batch-x16": "A batch 16 times as large gives {speedup} × the samples a second",
    "prefetch": "With a prefetch at the end of the input it runs {speedup} × faster",
    "parallel-map": "With parallel maps it runs {speedup} × faster",
    "parallel-read": "With parallel reading it runs {speedup} × faster",
    "cache": "With a cache behind the maps it runs {speedup} × faster",
    "determinism-off": "With input in any order it runs {speedup} × faster",
    "workers-4": "With four workers it runs {speedup} × faster",
    "callbacks-off": "Without callbacks it runs {speedup} × faster",
    "tf-function": "With its step in a tf.function it runs {speedup} × faster",
    "run-eagerly-off": "Without run_eagerly it runs {speedup} × faster",
    "mixed-bfloat16": "In mixed bfloat16 it runs {speedup} × faster",
    "mixed-float16": "In mixed float16 it runs {speedup} × faster",
    "xla": "With XLA it runs {speedup} × faster",
    "xla-off": "Without XLA it runs {speedup} × faster",
}


def headline(evidence: Evidence, findings: Sequence[Finding]) -> str:
    """Return the sentence or two that open a report; `findings` are in the report's order."""
    if evidence.window is None and not evidence.steps:
        return "The trace saw no training step."
    parts = [_device(evidence), _wait(evidence, findings)]
    sentences = ["; ".join(part for part in parts if part)]
    if evidence.environment.device.kind != "gpu":
        sentences = [f"Traced on a CPU: {parts[1]}" if parts[1] else "Traced on a CPU: the step hardly waits"]
    sentences += filter(None, (slowest(evidence), _what_if(evidence)))
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _device(evidence: Evidence) -> str:
    if evidence.environment.device.kind != "gpu":
        return ""
    busy = evidence.gpu_busy_share
    return "GPU not traced" if busy is None else f"GPU busy {percent(busy)} of {_whole(evidence)}"


def _whole(evidence: Evidence) -> str:
    """Return what shares are shares of."""
    return "the step" if evidence.saw_steps else "the time"


def _wait(evidence: Evidence, findings: Sequence[Finding]) -> str:
    if not evidence.steps:
        return "what the step waits for was not measured"
    shares = {bucket: evidence.share(bucket) or 0.0 for bucket in _WAITS}
    if evidence.facts.get("input_restarted") is True:
        # The trace itself began the input anew for every step.
        del shares["input_wait"]
    if not evidence.saw_steps and shares["unknown"] > 0.5:
        return "no training step was seen"
    bucket = max(shares, key=lambda name: (name != "unknown" and shares[name] >= _WORTH_SAYING, shares[name]))
    if shares[bucket] < _WORTH_SAYING:
        return ""
    words, factors = _WAITS[bucket]
    words = "waits for a slower host" if bucket == "collectives" and slowest(evidence) else words
    of = "it" if evidence.environment.device.kind == "gpu" else _whole(evidence)
    return f"{percent(shares[bucket])} of {of} {words}{_place(factors, findings)}"


def _place(factors: Sequence[str], findings: Sequence[Finding]) -> str:
    """Return the line to blame: a cause that is confirmed, else what the trace saw by itself, a symptom."""
    for proof in (Verdict.CONFIRMED, Verdict.OBSERVED):
        for finding in findings:
            where = finding.location
            in_code = where.path.endswith((".py", ".ipynb"))
            if finding.verdict is proof and finding.factor in factors and in_code:
                cell = f" cell {where.cell}" if where.cell is not None else ""
                return f" ({where.path}{cell}:{where.line})"
    return ""


def _what_if(evidence: Evidence) -> str:
    gains = [result for result in evidence.what_if if result.gain]
    if gains:
        return _gain(max(gains, key=lambda result: result.speedup))
    cached = evidence.experiment("cached-batch")
    # A wide interval around no change clears nobody.
    if cached is not None and cached.most_saved < _WORTH_SAYING:
        return "One cached batch is not measurably faster: input does not hold the step up"
    return ""


def _gain(best: WhatIf) -> str:
    words = _CHANGES.get(best.change, f"With {best.change} it runs {{speedup}} × faster")
    rates, runs = samples_a_second(best), "one run" if best.repeats == 1 else ""
    more = ", ".join(filter(None, (f"{rates} samples/s" if rates else "", runs)))
    told = words.format(speedup=f"{best.speedup:.1f}" if best.speedup >= 1.1 else f"{best.speedup:.2f}")
    return f"{told} ({more})" if more else told
