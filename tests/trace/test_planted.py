"""Costs that are planted in programs as sleep: the trace must find each of them, where it is and whole.

No sleep is shorter than it was asked to be, on however busy a machine; how near the shares come to the truth is
measured in `benchmarks/planted.py`.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.trace.conftest import Tracing
from tflint_gpu.cli import invoke
from tflint_gpu.trace.evidence import Evidence, save

pytestmark = pytest.mark.trace
#: Clocks of the profile and of the program differ by less.
NEARLY = 0.97

Planted = tuple[Evidence, Path]


@pytest.fixture(scope="module")
def fit(traced: Tracing) -> Planted:
    return traced("planted_fit.py")


@pytest.fixture(scope="module")
def loop(traced: Tracing) -> Planted:
    return traced("planted_loop.py")


def bucket(evidence: Evidence, name: str) -> float:
    """Return the milliseconds that the median profiled step spends in a bucket."""
    return statistics.median(step.buckets[name] for step in evidence.steps)


def test_a_slow_map_is_waiting_for_input(fit: Planted) -> None:
    evidence, _ = fit
    assert bucket(evidence, "input_wait") > NEARLY * 20


def test_a_slow_callback(fit: Planted) -> None:
    evidence, _ = fit
    (slow,) = evidence.callbacks
    assert slow.ms_per_step > NEARLY * 12


def test_both_are_confirmed(
    fit: Planted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder = fit
    monkeypatch.chdir(folder)
    found = {finding["name"]: finding for finding in findings(evidence, folder, "planted_fit.py", capsys)}
    for name in ("python-op-in-map", "per-batch-callback-work"):
        assert found[name]["verdict"] == "confirmed"
        assert found[name]["impact"]["step_share"] > 0


def test_python_in_the_step(loop: Planted) -> None:
    evidence, _ = loop
    spent = sum(op.ms or 0.0 for op in evidence.placements if op.in_step and op.op in ("EagerPyFunc", "PyFunc"))
    assert spent > NEARLY * 20


def test_a_loop_that_does_something_else_between_steps(loop: Planted) -> None:
    evidence, _ = loop
    assert bucket(evidence, "host") > NEARLY * 30


def findings(
    evidence: Evidence, folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """Return what a check of the script with `evidence` reports."""
    save(evidence, folder / "evidence.json")
    invoke(["check", name, "--evidence", "evidence.json", "--output-format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def test_validation_counts_and_what_is_muted_says_so(
    traced: Tracing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder = traced("planted_epochs.py")
    monkeypatch.chdir(folder)
    found = {each["name"]: each for each in findings(evidence, folder, "planted_epochs.py", capsys)}
    assert found["validation-overhead"]["verdict"] == "confirmed"
    assert evidence.facts["validation_ms"] > NEARLY * 40 * 5
    # Of two callbacks the one that would save is muted: what it costs is not known.
    reasons = [each.get("reason") for each in found.values() if each["name"] == "per-batch-callback-work"]
    assert any("ModelCheckpoint" in (reason or "") for reason in reasons)


def test_loops_in_the_graph_and_shapes_that_change(
    traced: Tracing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder = traced("planted_graph.py")
    monkeypatch.chdir(folder)
    lines = (folder / "planted_graph.py").read_text().splitlines()
    found = {each["name"]: each for each in findings(evidence, folder, "planted_graph.py", capsys)}
    loop, traces = found["map-fn-in-step"], found["function-retracing"]
    assert loop["verdict"] == "confirmed"
    assert lines[loop["line"] - 1].endswith("# the loop")
    assert traces["verdict"] == "observed"
    assert lines[traces["line"] - 1].endswith("# the call")
    assert "shape of argument 2 changed" in traces["message"]


def test_nothing_is_confirmed_on_a_sound_program(
    traced: Tracing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder = traced("sound.py")
    monkeypatch.chdir(folder)
    loud = [
        each["name"]
        for each in findings(evidence, folder, "sound.py", capsys)
        if each["verdict"] in ("confirmed", "observed") and each["severity"] in ("warning", "error")
    ]
    assert loud == []
