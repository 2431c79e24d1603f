"""The probe in the interpreters that ``TFLINT_GPU_PYTHONS`` names: old TensorFlow, old Python, Keras 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.trace.conftest import SCRIPTS
from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.script import find_script
from tflint_gpu.trace.session import TraceJob, trace_script

PYTHONS = [path for path in os.environ.get("TFLINT_GPU_PYTHONS", "").split(os.pathsep) if path]
NAME = "kinds.py"

pytestmark = [
    pytest.mark.trace,
    pytest.mark.skipif(not PYTHONS, reason="TFLINT_GPU_PYTHONS names no interpreter with a TensorFlow"),
]

#: Argument of the script, how its steps are seen, its line, and changes that its input or step allows.
KINDS = [
    (
        "fit",
        "fit",
        "model.fit(slow, epochs=2, verbose=0, callbacks",
        ("cached-batch", "parallel-map", "cache", "callbacks-off"),
    ),
    ("eager-fit", "fit", "model.fit(slow, epochs=2, verbose=0, callbacks", ("run-eagerly-off",)),
    ("sequence", "fit", "model.fit(Items", ("cached-batch", "workers-4")),
    ("generator", "fit", "model.fit(batches", ()),
    ("train_on_batch", "train_on_batch", "model.train_on_batch", ()),
    ("eager-loop", "dataset loop", "for rows, targets in plain:\n        train(", ("tf-function",)),
    ("loop", "dataset loop", "for rows, targets in slow", ("cached-batch", "prefetch", "parallel-map", "cache")),
]


def traced(python: str, kind: str, changes: tuple[str, ...]) -> Evidence:
    job = TraceJob(find_script(NAME), (kind,), python=python, changes=changes, budget=60.0)
    return trace_script(job, lambda _text: None)


@pytest.mark.parametrize(("kind", "seen_as", "text", "changes"), KINDS, ids=[row[0] for row in KINDS])
@pytest.mark.parametrize("python", PYTHONS or ["none"])
def test_steps_stages_and_changes(
    python: str,
    kind: str,
    seen_as: str,
    text: str,
    changes: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = (SCRIPTS / NAME).read_text(encoding="utf-8")
    (tmp_path / NAME).write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    evidence = traced(python, kind, changes)
    window = evidence.window
    assert window is not None
    assert window.spot is not None
    assert (window.seen_as, window.batch_size) == (seen_as, 8)
    assert window.spot.line == source[: source.index(text)].count("\n") + 1
    assert window.steps >= 10
    assert len(evidence.steps) >= 5
    assert evidence.notes == ()
    assert {result.change for result in evidence.what_if} == set(changes)
    if kind == "fit":
        assert [(made.kind, made.name) for made in evidence.python_input] == [("numpy_function", "waits")]
        (slow,) = evidence.callbacks
        assert slow.name == "Slow"
        assert 0.1 < slow.ms_per_step / window.step_ms <= 1
        cached = evidence.experiment("cached-batch")
        assert cached is not None
        assert cached.speedup > 1
    if kind in ("fit", "loop"):
        assert any(stage.spot is not None for stage in evidence.pipelines)
    if kind == "sequence":
        assert evidence.python_input[0].kind == "PyDataset"
