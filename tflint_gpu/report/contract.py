"""The format ``json``: one object that other programs may rely on. Keys may be added, never changed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tflint_gpu import __version__
from tflint_gpu.findings import Edit, Finding, Severity
from tflint_gpu.program.kernels import table_version
from tflint_gpu.program.target import Target
from tflint_gpu.report import hosts
from tflint_gpu.report.edits import edits_in
from tflint_gpu.report.fingerprint import fingerprints
from tflint_gpu.report.headline import headline
from tflint_gpu.report.merge import Report
from tflint_gpu.source.texts import Error
from tflint_gpu.trace.evidence import Evidence, Losses, Placement, Step, VerifiedFix, WhatIf

#: Raised when the meaning of a key changes; new keys alone do not.
SCHEMA = 1


def render(report: Report) -> str:
    """Return the report as JSON with a final line end; `tests/schemas/contract.json` describes it."""
    return json.dumps(contract(report), indent=1, ensure_ascii=False) + "\n"


def contract(report: Report) -> dict[str, Any]:
    """Return the report as plain data."""
    names = fingerprints(report.findings, report.texts)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "target": _target(report.target),
        "targets": [_target(target) for target in report.targets or (report.target,)],
        "findings": [_finding(finding, names[finding], report) for finding in report.findings],
        "trace": None if report.evidence is None else _trace(report.evidence, report),
        "other_traces": [_trace(each, report) for each in (report.evidence.others if report.evidence else ())],
        "errors": list(map(_error, report.errors)),
        "left_out": list(map(_error, report.left_out)),
        "notes": list(report.notes),
        "summary": summary(report),
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "tensorflow": ".".join(map(str, target.tensorflow)),
        "keras": str(target.keras[0]),
        "backend": target.backend,
        "from": target.source,
        "kernels": table_version(target.tensorflow),
    }


def _error(error: Error) -> dict[str, Any]:
    return {"path": error.path, "cell": error.cell, "line": error.line, "message": error.message}


def summary(report: Report) -> dict[str, int]:
    """Return how many files were checked and how many findings there are of each severity."""
    counts = Counter(finding.severity for finding in report.findings)
    loudest_first = sorted(Severity, reverse=True)
    return {"files": report.files, **{str(severity): counts[severity] for severity in loudest_first}}


def _finding(finding: Finding, fingerprint: str, report: Report) -> dict[str, Any]:
    where = finding.location
    return {
        "code": finding.code,
        "name": finding.name,
        "factor": finding.factor,
        "severity": str(finding.severity),
        "verdict": str(finding.verdict),
        "message": finding.message,
        "path": where.path,
        "cell": where.cell,
        "line": where.line,
        "column": where.column,
        "end_line": where.end_line,
        "end_column": where.end_column,
        "function": finding.qualname,
        "related": [
            {
                "path": other.location.path,
                "cell": other.location.cell,
                "line": other.location.line,
                "message": other.message,
            }
            for other in finding.related
        ],
        "evidence": [
            {"metric": measure.metric, "value": measure.value, "unit": measure.unit}
            for measure in finding.evidence
        ],
        "reason": finding.reason or None,
        "impact": None
        if finding.impact is None
        else {"step_share": finding.impact.step_share, "basis": finding.impact.basis},
        "fix": _fix(finding, report),
        "unfixable": finding.unfixable or None,
        "fingerprint": fingerprint,
    }


def _fix(finding: Finding, report: Report) -> dict[str, Any] | None:
    if finding.fix is None:
        return None
    edits, reason = edits_in(report, finding)
    return {
        "safety": finding.fix.safety,
        "title": finding.fix.title,
        "edits": [_edit(edit) for edit in edits],
        "declined": reason or None,
    }


def _edit(edit: Edit) -> dict[str, Any]:
    where = edit.location
    return {
        "path": where.path,
        "cell": where.cell,
        "line": where.line,
        "column": where.column,
        "end_line": where.end_line,
        "end_column": where.end_column,
        "text": edit.text,
    }


def _trace(evidence: Evidence, report: Report) -> dict[str, Any]:
    device = evidence.environment.device
    return {
        "headline": headline(evidence, report.findings),
        "device": {"name": device.name, "kind": device.kind, "traced": device.traced},
        "gpu_busy_share": evidence.gpu_busy_share,
        "step_ms": evidence.step_ms,
        "samples_per_second": evidence.samples_per_second,
        "steps": [_step(step) for step in evidence.steps],
        "what_if": [
            {**_what_if(result), "gpu_busy_share": evidence.busy_share_with(result)} for result in evidence.what_if
        ],
        "verified_fixes": [_verified(fix) for fix in evidence.verified_fixes],
        "placements": [_placement(placement) for placement in evidence.placements],
        "notes": list(evidence.notes),
        **hosts.as_data(evidence),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "step_ms": step.step_ms,
        "gpu_busy_ms": step.gpu_busy_ms,
        "kernel_ms": step.kernel_ms,
        "buckets": dict(step.buckets),
    }


def _what_if(result: WhatIf) -> dict[str, Any]:
    return {
        "change": result.change,
        "step_ms": result.step_ms,
        "baseline_ms": result.baseline_ms,
        "speedup": result.speedup,
        "repeats": result.repeats,
        "spread": result.spread,
        "low": result.low,
        "high": result.high,
        "samples_per_second": result.samples_per_second,
        "baseline_samples_per_second": result.baseline_samples_per_second,
        "peak_bytes": result.peak_bytes,
        "baseline_peak_bytes": result.baseline_peak_bytes,
    }


def _verified(fix: VerifiedFix) -> dict[str, Any]:
    return {
        "code": fix.code,
        "name": fix.name,
        "safety": fix.safety,
        "places": [{"path": spot.path, "cell": spot.cell, "line": spot.line} for spot in fix.spots],
        "helpful": fix.helpful,
        "result": None if fix.result is None else _what_if(fix.result),
        "losses": None if fix.losses is None else _losses(fix.losses),
        "note": fix.note,
    }


def _losses(losses: Losses) -> dict[str, Any]:
    return {
        "steps": list(losses.steps),
        "before": list(losses.before),
        "after": list(losses.after),
        "difference": losses.difference,
        "noise": losses.noise,
        "agree": losses.agree,
    }


def _placement(placement: Placement) -> dict[str, Any]:
    spot = placement.spot
    return {
        "op": placement.op,
        "count": placement.count,
        "device": placement.device,
        "predicted": placement.predicted,
        "path": spot.path if spot else None,
        "cell": spot.cell if spot else None,
        "line": spot.line if spot else None,
        "ms": placement.ms,
        "reason": placement.reason,
    }
