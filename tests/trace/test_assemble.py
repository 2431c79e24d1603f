from __future__ import annotations

from typing import Any

import pytest

from tflint_gpu.trace.assemble import (
    as_plain,
    calls_of,
    complete,
    environment_of,
    epochs_of,
    facts_of,
    functions_of,
    per_step,
    spread,
    step_times,
    window_of,
    written,
)
from tflint_gpu.trace.evidence import Device, Placement, Spot, Step

SPOT = {"path": "train.py", "line": 9, "cell": None, "function": ""}


def report(warmup: int = 0, plain: int = 0, profiled: int = 0, **more: Any) -> dict[str, Any]:
    track = {
        "kind": more.pop("kind", "fit"),
        "spot": SPOT,
        "batch_size": 32,
        "starts": [],
        "n": warmup + plain + profiled,
        "warmup_ms": [900.0, *[20.0] * (warmup - 1)] if warmup else [],
        "plain_ms": [10.0] * plain,
        "profiled_ms": [12.0] * profiled,
    }
    return {"status": "complete", "track": track, **more}


def test_a_window_needs_plain_and_profiled_steps() -> None:
    assert complete(report(10, 20, 20))
    assert complete(report(2, 5, 5))
    assert not complete(report(10, 20, 0))
    assert not complete(report(10, 3, 9))
    assert complete({"status": "time", "track": None})
    assert not complete({"status": "ended", "track": None})


def test_step_times_are_plain_ones_or_the_best_there_are() -> None:
    assert step_times(report(10, 20, 20)) == [10.0] * 20
    # The first step traces and is no measure of the others.
    assert step_times(report(4, 0, 0)) == [20.0] * 3
    assert step_times(report(1, 0, 3)) == [12.0] * 3
    assert step_times(report(1, 0, 0)) == [900.0]
    assert step_times({"status": "ended", "track": None}) == []


def test_the_window_counts_the_baseline_of_trials() -> None:
    arms = {"": {"means": [14.0, 14.0], "times": [14.0] * 40, "problem": "", "error": None}}
    window = window_of(report(10, 20, 20), "", arms)
    assert window is not None
    assert (window.seen_as, window.steps, window.step_ms) == ("fit", 60, 14.0)
    alone = window_of(report(10, 20, 20, kind="optimizer"), "", {})
    assert alone is not None
    assert (alone.seen_as, alone.steps, alone.step_ms, alone.spread) == ("step function", 20, 10.0, 0.0)


def test_a_program_without_steps_is_seen_by_time() -> None:
    window = window_of({"status": "time", "track": None, "seconds": 3.0}, "", {})
    assert window is not None
    assert (window.seen_as, window.step_ms) == ("time", 3000.0)


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    assert spread([10.0, 10.0, 10.0]) == 0.0
    assert spread([8.0, 9.0, 10.0, 11.0, 12.0]) == pytest.approx(0.3)


def test_executions_of_several_steps_are_divided() -> None:
    step = Step(80.0, 40.0, None, {"host": 80.0})
    assert per_step([step], 8) == (Step(10.0, 5.0, None, {"host": 10.0}),)
    assert per_step([step], 1) == (step,)


def test_the_first_call_is_left_out_of_the_median() -> None:
    raw = {
        "method": "fit",
        "calls": 3,
        "ms": [900.0, 10.0, 12.0],
        "rows": [1, 1, None],
        "spot": SPOT,
        "inside": "",
        "share": 0.5,
    }
    (call,) = calls_of({"keras_calls": [raw]})
    assert (call.ms, call.rows, call.spot) == (11.0, 1, Spot("train.py", 9))


def test_a_function_is_told_once() -> None:
    raw = {
        "name": "step",
        "spot": SPOT,
        "caller": SPOT,
        "traces": 3,
        "late": 2,
        "calls": 9,
        "jit": False,
        "causes": ["x"],
        "trace_ms": 5.0,
        "retrace_ms": 1.0,
    }
    (found,) = functions_of([{"functions": [raw]}, {"functions": [{**raw, "traces": 50}]}])
    assert (found.traces, found.retraces_after_warmup) == (3, 2)


def test_the_device_is_the_gpu_that_the_run_saw() -> None:
    gpu = {"name": "NVIDIA H200", "compute_capability": "9.0"}
    profiled = Device("GPU:0", "gpu", traced=True, memory_bytes=10)
    device = environment_of({"environment": {"gpus": [gpu, gpu]}}, profiled).device
    assert (device.name, device.traced, device.count, device.memory_bytes) == ("NVIDIA H200", True, 2, 10)
    # A GPU that left no trace in the profile is a GPU that was not traced, not an idle one.
    untraced = environment_of({"environment": {"gpus": [gpu]}}, Device("CPU", "cpu", traced=True)).device
    assert (untraced.kind, untraced.traced) == ("gpu", False)
    assert environment_of({"environment": {}}, None).device.kind == "cpu"


def test_times_of_ops_are_parts_of_a_plain_step() -> None:
    ops = [Placement("A", 1, "cpu", True, None, ms=15.0), Placement("B", 1, "cpu", True, None)]
    steps = [Step(20.0, None, None, {})] * 3
    assert [each.ms for each in as_plain(ops, steps, [10.0, 10.0, 30.0])] == [7.5, None]
    assert [each.ms for each in as_plain(ops, steps, [])] == [15.0, None]
    collected = [*steps, Step(400.0, None, None, {})]
    assert [each.ms for each in as_plain(ops, collected, [10.0, 10.0, 30.0])] == [7.5, None]


def test_epochs_are_known_by_their_first_steps() -> None:
    track = {"starts": [[10, 90.0], [20, 100.0], [30, 95.0]]}
    assert epochs_of({"track": track}) == {"epoch_steps": 10, "epoch_start_ms": 95.0}
    assert epochs_of({"track": {"starts": []}}) == epochs_of({"track": None}) == {}


def test_files_of_the_scripts_own_writing_are_told() -> None:
    assert list(written([{"written": []}])) == []
    (told,) = written([{"written": [f"{n}.csv" for n in range(7)]}, {"written": ["0.csv"]}])
    assert told.endswith("0.csv, 1.csv, 2.csv, 3.csv, 4.csv and 2 more.")


def test_facts_are_those_of_the_whole_script_and_of_the_window() -> None:
    whole: dict[str, Any] = {"epoch_gaps": [3.0, 9.0, 1.0], "epoch_steps": [4, 4], "validation_ms": None}
    first = report(6, 0, 0, facts={"jit": False, "retraced": 2}, steps_per_execution=1, **whole)
    own = facts_of(first, first)
    assert own == {"jit": False, "retraced": 2, "steps_per_execution": 1, "epoch_gap_ms": 3.0, "epoch_steps": 4}
    prolonged = report(10, 20, 20, facts={"jit": True, "retraced": 0}, steps_per_execution=8, **whole)
    prolonged["validation_ms"] = 40.0
    both = facts_of(first, prolonged)
    assert both["own_step_ms"] > 0
    assert (both["jit"], both["retraced"], both["steps_per_execution"]) == (True, 2, 8)
    assert both["validation_ms"] == 40.0
