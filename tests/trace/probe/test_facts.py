"""What the probe's figures are over: costs that come every few steps, first calls that trace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tflint_gpu.trace.probe import placement, spots
from tflint_gpu.trace.probe.clock import PLAIN, WARMUP, Track
from tflint_gpu.trace.probe.facts import call_record, callback_ms, function_record, place
from tflint_gpu.trace.probe.functions import FunctionRecord


def track_of(*times: float, warmup: int = 2) -> Track:
    track = Track("fit", None)
    track.steps = [(ms, WARMUP if at < warmup else PLAIN) for at, ms in enumerate(times)]
    return track


def test_the_first_steps_of_a_callback_are_left_out() -> None:
    track = track_of(900.0, 12.0, *[10.0] * 10)
    by_step = dict.fromkeys(range(12), 4.0) | {0: 850.0}
    assert callback_ms(track, by_step) == pytest.approx(4.0)


def test_a_callback_that_works_every_fifth_batch_is_never_dearer_than_the_steps() -> None:
    track = track_of(10.0, 10.0, *[10.0, 10.0, 10.0, 10.0, 60.0] * 4)
    cost = callback_ms(track, dict.fromkeys(range(6, 22, 5), 50.0))
    # Half of the time of the steps goes into it; of a median step of 10 ms that is 5 ms, not 10.
    assert cost == pytest.approx(5.0)


def test_a_short_run_counts_what_steps_there_are() -> None:
    assert callback_ms(track_of(100.0), {0: 50.0}) == pytest.approx(50.0)
    assert callback_ms(track_of(), {}) == 0.0


def test_tracing_again_costs_what_the_same_call_does_not_take_without_it() -> None:
    record = FunctionRecord("step", None)
    record.traces, record.late, record.trace_ms = 5, 4, [500.0, 60.0, 60.0, 60.0, 60.0]
    record.late_ms, record.plain_ms, record.plain = 240.0, 160.0, 16
    raw = function_record(record, track_of(*[10.0] * 22))
    assert raw["trace_ms"] == pytest.approx(740.0)
    assert raw["retrace_ms"] == pytest.approx((240.0 - 4 * 10.0) / 20)
    assert function_record(record, None)["retrace_ms"] is None


def test_calls_are_held_against_the_steps_they_were_made_in() -> None:
    track = track_of(900.0, 12.0, *[10.0] * 10)
    record = {"method": "predict", "by_step": {0: 800.0, **dict.fromkeys(range(2, 12), 4.0)}}
    assert call_record(record, track) == {"method": "predict", "share": pytest.approx(0.4)}
    assert call_record({"method": "evaluate", "by_step": {}}, track)["share"] is None


class Frame(NamedTuple):
    """One frame of a call stack, as TensorFlow shows it."""

    filename: str
    lineno: int
    name: str


class Stack(tuple[Any, ...]):
    """A call stack that counts how often it is read."""

    read = 0

    def __reversed__(self) -> Any:
        Stack.read += 1
        return iter(self[::-1])


def run_with(ops: int) -> Any:
    """Return a run with one traced function of `ops` ops, all made by one call under two frames."""
    stack = Stack(Frame(name, 7, "f") for name in ("train.py", "library.py"))

    def tensor(rank: int) -> Any:
        dtype = SimpleNamespace(name="float32", size=4, is_integer=False, is_bool=False)
        dtype.base_dtype = dtype
        return SimpleNamespace(dtype=dtype, shape=SimpleNamespace(rank=rank, as_list=lambda: [8] * rank))

    graph = SimpleNamespace(name="step")
    made = [
        SimpleNamespace(
            name=f"Mul_{at}",
            type="Mul",
            traceback=stack,
            graph=graph,
            device="",
            node_def=SimpleNamespace(attr={}),
            inputs=[tensor(2)],
            outputs=[tensor(2)],
        )
        for at in range(ops)
    ]
    graph.get_operations = lambda: made
    concrete = SimpleNamespace(graph=graph, function_def=SimpleNamespace(attr={}))
    places = SimpleNamespace(is_project=lambda name: name == "train.py", spot_of=lambda *spot: spot)
    return SimpleNamespace(places=places, functions=SimpleNamespace(concrete_functions=lambda: ([], [concrete])))


@pytest.fixture
def cpu_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "cuda_build", lambda: False)
    monkeypatch.setattr(placement, "_type_attributes", lambda op: {})  # reads TensorFlow's names of types


@pytest.mark.usefixtures("cpu_build")
def test_ops_of_one_call_are_looked_up_once() -> None:
    result: dict[str, Any] = {"placements": [], "notes": []}
    Stack.read = 0
    place(run_with(300), result)

    (record,) = result["placements"]
    assert (record["count"], record["line"], result["notes"]) == (300, 7, [])
    assert Stack.read == 1


@pytest.mark.usefixtures("cpu_build")
def test_graphs_too_large_for_the_time_cost_the_placements_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spots, "LIMIT", -1.0)
    result: dict[str, Any] = {"placements": [], "notes": []}
    place(run_with(3), result)

    assert result["placements"] == []
    (note,) = result["notes"]
    assert "placements are missing" in note
    assert "too large" in note
