"""Costs of known length planted in programs: the trace must find each share within five points of the truth."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.trace.conftest import Tracing
from tflint_gpu.cli import invoke
from tflint_gpu.trace.evidence import Evidence, save

pytestmark = pytest.mark.trace
#: Ten steps are let pass, the next twenty timed, the next twenty profiled: a figure's truth is in its own steps.
PLAIN, PROFILED = (10, 30), (31, 49)
POINTS = 0.05

Planted = tuple[Evidence, Path, dict[str, float], dict[str, float]]


def truth(notes: Path, steps: tuple[int, int]) -> dict[str, float]:
    """Return the share of `steps` that each cost takes, by the program's own clock."""
    first, last = steps
    costs: dict[str, float] = defaultdict(float)
    moments: list[float] = []
    for line in notes.read_text().splitlines():
        word, value = line.split()
        if word == "step":
            moments.append(float(value))
        elif first < len(moments) <= last:
            # What is noted after a step belongs to the next one.
            costs[word] += float(value)
    whole = moments[last] - moments[first]
    return {word: cost / whole for word, cost in costs.items()}


def planted(traced: Tracing, name: str, folder: Path) -> Planted:
    evidence, where = traced(name, str(folder / "notes.txt"))
    notes = folder / "notes.txt"
    return evidence, where, truth(notes, PLAIN), truth(notes, PROFILED)


@pytest.fixture(scope="module")
def fit(traced: Tracing, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return planted(traced, "planted_fit.py", tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="module")
def loop(traced: Tracing, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return planted(traced, "planted_loop.py", tmp_path_factory.mktemp("loop"))


def test_a_slow_map_is_waiting_for_input(fit: Planted) -> None:
    evidence, _, _, true = fit
    assert true["input"] > 0.4
    assert evidence.share("input_wait") == pytest.approx(true["input"], abs=POINTS)


def test_a_slow_callback(fit: Planted) -> None:
    evidence, _, true, _ = fit
    (slow,) = evidence.callbacks
    assert true["callback"] > 0.2
    assert evidence.step_ms is not None
    assert slow.ms_per_step / evidence.step_ms == pytest.approx(true["callback"], abs=POINTS)


def test_both_are_confirmed(
    fit: Planted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder, plain, profiled = fit
    monkeypatch.chdir(folder)
    save(evidence, folder / "evidence.json")
    invoke(["check", "planted_fit.py", "--evidence", "evidence.json", "--output-format", "json"])
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    true = {"python-op-in-map": profiled["input"], "per-batch-callback-work": plain["callback"]}
    for name, share in true.items():
        assert found[name]["verdict"] == "confirmed"
        assert found[name]["impact"]["step_share"] == pytest.approx(share, abs=POINTS)


def test_python_in_the_step(loop: Planted) -> None:
    evidence, _, _, true = loop
    spent = sum(op.ms or 0.0 for op in evidence.placements if op.in_step and op.op in ("EagerPyFunc", "PyFunc"))
    assert true["python"] > 0.3
    assert evidence.step_ms is not None
    assert spent / evidence.step_ms == pytest.approx(true["python"], abs=POINTS)


def test_a_loop_that_does_something_else_between_steps(loop: Planted) -> None:
    evidence, _, _, true = loop
    assert true["host"] > 0.4
    assert evidence.share("host") == pytest.approx(true["host"], abs=POINTS)


def findings(
    evidence: Evidence, folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """Return what a check of the script with `evidence` reports."""
    save(evidence, folder / "evidence.json")
    invoke(["check", name, "--evidence", "evidence.json", "--output-format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def test_validation_counts_and_what_is_muted_says_so(
    traced: Tracing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence, folder, plain, _ = planted(traced, "planted_epochs.py", tmp_path)
    monkeypatch.chdir(folder)
    found = {each["name"]: each for each in findings(evidence, folder, "planted_epochs.py", capsys)}
    validation = found["validation-overhead"]
    assert validation["verdict"] == "confirmed"
    assert plain["validation"] > 0.3
    assert validation["impact"]["step_share"] == pytest.approx(plain["validation"], abs=2 * POINTS)
    saving = found["per-batch-callback-work"]
    assert saving["verdict"] == "unmeasured"
    assert "ModelCheckpoint" in saving["reason"]


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
