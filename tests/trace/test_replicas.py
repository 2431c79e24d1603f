"""MirroredStrategy over two logical CPU devices: what the rules on several replicas make of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.conftest import Tracing
from tflint_gpu.cli.run import assemble, in_light_of, lint
from tflint_gpu.config import Settings
from tflint_gpu.findings import Finding, Verdict
from tflint_gpu.source.discovery import absolute_path, source_file
from tflint_gpu.trace.evidence import Evidence

pytestmark = pytest.mark.trace


def judged(folder: Path, evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> dict[str, Finding]:
    """Return the findings on the traced script, by the names of their rules."""
    monkeypatch.chdir(folder)
    settings = in_light_of(Settings(pedantic=True), evidence)
    result = lint([source_file(absolute_path("two_replicas.py"), explicit=True)], settings)
    return {finding.name: finding for finding in assemble(result, evidence, settings).findings}


def test_two_replicas_on_cpus(traced: Tracing, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, folder = traced("two_replicas.py")
    assert evidence.window is not None
    assert evidence.window.seen_as == "fit"
    assert evidence.saw_steps
    assert evidence.environment.device.kind == "cpu"
    assert evidence.hosts == ()
    assert evidence.facts["replicas"] == 2
    # The replicas exchange gradients, and that is no computing.
    assert (evidence.share("collectives") or 0.0) > 0.0
    for step in evidence.steps:
        assert sum(step.buckets.values()) == pytest.approx(step.step_ms, abs=1e-3)
    found = judged(folder, evidence, monkeypatch)
    starved = found["replica-batch-starved"]
    assert starved.verdict is Verdict.UNMEASURED
    assert "only a GPU shows" in starved.reason
    # Two CPUs say nothing of idle GPUs, of an exchange between GPUs, or of a slower one among them.
    assert [name for name, finding in found.items() if finding.factor == "multi-gpu"] == ["replica-batch-starved"]
