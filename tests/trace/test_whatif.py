from __future__ import annotations

from typing import Any

import pytest

from tflint_gpu.trace.evidence import WhatIf
from tflint_gpu.trace.whatif import (
    Arm,
    answered,
    applicable,
    compare,
    explore,
    from_arms,
    knee,
    settled,
    target_of,
)

SPOT = {"path": "train.py", "line": 9, "cell": None, "function": ""}


def report(times: list[float], **more: Any) -> dict[str, Any]:
    track = {
        "kind": "fit",
        "spot": SPOT,
        "trained": True,
        "batch_size": more.pop("batch_size", 32),
        "n": len(times),
        "warmup_ms": [],
        "plain_ms": times,
        "profiled_ms": [],
    }
    return {
        "status": "complete",
        "track": track,
        "tracks": [track],
        "applied": True,
        "chains": [],
        "callbacks": [],
        "environment": {},
        "functions": [],
        "python_input": [],
        "steps_per_execution": 1,
        **more,
    }


def tried(*means: float, problem: str = "", error: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return what a child writes of one arm."""
    told = {"means": list(means), "times": list(means) * 5, "problem": problem, "error": error}
    return {**told, "rows": 32, "memory": None, "spots": [], **more}


def arm(*means: float) -> Arm:
    return Arm("cached-batch", list(means))


def test_a_clear_difference_is_a_gain() -> None:
    result = compare(Arm("", [40.0, 41.0]), arm(20.0, 20.4))
    assert result.speedup == pytest.approx(2.0, rel=0.02)
    assert result.low > 1.5
    assert result.gain
    assert result.saved_share == pytest.approx(0.5, abs=0.02)


def test_a_difference_within_the_noise_is_none() -> None:
    result = compare(Arm("", [40.0, 60.0, 45.0]), arm(41.0, 55.0, 38.0))
    assert result.low < 1.0 < result.high
    assert not result.gain
    assert result.saved_share == 0.0


def test_single_runs_are_told() -> None:
    steps = [40.0 + each for each in range(10)]
    one = Arm("", [44.5], steps)
    other = Arm("cached-batch", [22.2], [each / 2 for each in steps])
    result = compare(one, other)
    assert result.note.startswith("one run")
    assert result.low < result.speedup < result.high


def test_a_single_run_is_not_sure_of_what_runs_differ_by() -> None:
    steps = [40.0 + each / 100 for each in range(20)]
    result = compare(Arm("", [40.1], steps), Arm("cached-batch", [38.1], [each * 0.95 for each in steps]))
    assert not result.gain
    assert result.high > 1.25
    assert compare(Arm("", [40.1], steps), Arm("cached-batch", [20.0], [each / 2 for each in steps])).gain


def test_settled_needs_two_runs_of_both() -> None:
    assert not settled(Arm("", [40.0]), arm(20.0, 20.1))
    assert settled(Arm("", [40.0, 40.2]), arm(20.0, 20.1))
    assert settled(Arm("", [40.0, 40.1]), arm(40.05, 40.06))
    assert not settled(Arm("", [40.0, 50.0]), arm(41.0, 47.0))
    assert settled(Arm("", [40.0, 50.0]), arm(41.0, 47.0, 40.0, 55.0, 43.0))


def test_arms_take_turns_until_settled() -> None:
    calls: list[str] = []

    def run(change: str) -> dict[str, Any]:
        calls.append(change)
        return report([20.0, 20.1, 20.2] if change else [40.0, 40.1, 40.2])

    results, notes = explore(["cached-batch"], report([40.0, 40.1, 40.3]), run, 60.0, lambda _: None)
    assert calls == ["cached-batch", "", "cached-batch", ""]
    assert results[0].gain
    assert notes == ()


def test_a_larger_batch_counts_per_original_step() -> None:
    def run(change: str) -> dict[str, Any]:
        return report([60.0, 60.3], batch_size=64) if change else report([40.0, 40.2])

    (result,), _ = explore(["batch-x2"], report([40.0, 40.1]), run, 60.0, lambda _: None)
    assert result.speedup == pytest.approx(4 / 3, rel=0.01)


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (None, "failed"),
        (report([20.0, 20.0], applied=False), "does not apply"),
        (report([20.0, 20.0], batch_size=32), "stayed"),
        (report([20.0]), "too few"),
        ({"status": "crashed", "error": {"type": "ResourceExhaustedError", "text": "OOM"}}, "fit into memory"),
    ],
)
def test_a_change_that_fails_is_a_note(broken: dict[str, Any] | None, word: str) -> None:
    def run(change: str) -> dict[str, Any] | None:
        return broken if change else report([40.0, 40.0])

    results, notes = explore(["batch-x2"], report([40.0, 40.1]), run, 60.0, lambda _: None)
    assert results == ()
    assert word in notes[0]


def test_the_budget_is_kept() -> None:
    results, notes = explore(["cached-batch"], report([40.0, 40.1]), lambda _: report([20.0, 21.0]), 0.0, print)
    assert results == ()
    assert "not tried" in notes[0]


def test_no_run_begins_that_would_end_after_the_budget() -> None:
    results, notes = explore(["xla"], report([40.0, 40.1]), lambda _: report([20.0, 21.0]), 10.0, print, 12.0)
    assert results == ()
    assert notes == ("what-if xla: not tried, the budget was spent",)


def test_what_applies_depends_on_the_training() -> None:
    assert applicable(report([1.0])) == ("cached-batch", "batch-x2", "batch-x4", "xla", "steps-per-execution-8")
    assert "xla-off" in applicable(report([1.0], facts={"jit": True}))
    assert "steps-per-execution-8" not in applicable(report([1.0], facts={"run_eagerly": True}))
    eager = report([1.0])
    eager["track"]["kind"] = "optimizer"
    assert applicable(eager) == ()


def test_the_target_names_loop_batching_and_functions() -> None:
    found = report([1.0], chains=[[{"op": "PrefetchDataset", "spot": None}, {"op": "BatchDataset", "spot": SPOT}]])
    found["functions"] = [{"trains": True, "spot": SPOT}, {"trains": False, "spot": SPOT}]
    target = target_of(found)
    assert (target["kind"], target["batch"], target["functions"]) == ("fit", SPOT, [SPOT])


def test_what_a_child_tried_itself() -> None:
    arms = {
        "": tried(40.0, 40.2, 39.9),
        "cached-batch": tried(20.0, 20.1, 20.2),
        "batch-x2": tried(),
        "xla": tried(problem="the change does not apply to this training"),
        "batch-x4": tried(error={"type": "ResourceExhaustedError", "text": "OOM when allocating"}),
    }
    (result,), notes = from_arms(arms)
    assert (result.change, result.repeats, result.gain) == ("cached-batch", 3, True)
    assert [note.split(":")[0] for note in notes] == ["what-if batch-x2", "what-if batch-x4"]
    assert [change for change in arms if change and not answered(change, arms)] == ["xla"]
    assert from_arms({}) == ((), ())
    assert not answered("cached-batch", {"": tried(), "cached-batch": tried()})


def test_runs_that_scatter_beyond_all_measure_are_a_note_and_no_result() -> None:
    results, notes = from_arms({"": tried(10.0, 900.0, times=[10.0]), "xla": tried(10.0, times=[10.0])})
    assert results == ()
    assert notes == ("what-if xla: one run too unsteady to tell anything; a larger --budget allows more",)


def test_what_applies_to_slow_input_and_to_eager_steps() -> None:
    chain = [[{"op": "BatchDataset", "spot": SPOT}]]
    found = applicable(report([1.0], chains=chain, callbacks=[{"name": "Slow"}], facts={"run_eagerly": True}))
    assert {"prefetch", "parallel-map", "parallel-read", "cache", "determinism-off"} <= set(found)
    assert {"callbacks-off", "run-eagerly-off"} <= set(found)
    assert "workers-4" not in found
    assert "workers-4" in applicable(report([1.0], python_input=[{"kind": "PyDataset"}]))


@pytest.mark.parametrize(
    ("capability", "policy", "change"),
    [
        ("9.0", "float32", "mixed-bfloat16"),
        ("7.5", "float32", "mixed-float16"),
        ("6.1", "float32", None),
        ("9.0", "mixed_float16", None),
        (None, "float32", None),
    ],
)
def test_mixed_precision_is_tried_on_a_gpu_that_has_it(
    capability: str | None, policy: str, change: str | None
) -> None:
    gpus = {"gpus": [{"compute_capability": capability}]} if capability else {}
    found = applicable(report([1.0], environment=gpus, facts={"mixed_precision": policy}))
    assert [each for each in found if each.startswith("mixed")] == ([change] if change else [])


def sized(factor: int, speedup: float, half: float = 0.02) -> WhatIf:
    return WhatIf(f"batch-x{factor}", 10 / speedup, 10, speedup, 3, half, speedup - half, speedup + half)


def test_the_knee_of_the_batch_sweep() -> None:
    assert "up to twice the size, a batch of 64 (" in knee([sized(2, 1.6), sized(4, 1.65)], 32)
    assert "at least up to four times the size (" in knee([sized(2, 1.6), sized(4, 2.5)])
    assert "up to 8 times" in knee([sized(2, 1.6), sized(4, 2.5), sized(8, 3.9), sized(16, 4.0)])
    assert "convergence is not tested" in knee([sized(2, 1.6), sized(4, 2.5)])
    assert knee([sized(2, 1.0), sized(4, 1.01)]) == ""
    # One size alone is no sweep, and between intervals that overlap nothing is known.
    assert knee([sized(2, 1.6)]) == ""
    assert knee([sized(2, 1.6, 0.5), sized(4, 1.9, 0.5)]) == ""
    assert knee([sized(2, 1.6), sized(4, 2.0, 0.4)]) == ""
    # Where only the last size is clear, the growth reaches it.
    assert "at least up to four times" in knee([sized(2, 1.2, 0.3), sized(4, 3.5)])


def test_samples_a_second_and_memory_are_told_where_they_are_known() -> None:
    arms = {"": tried(40.0, 40.0, memory=2000), "batch-x2": tried(20.0, 20.0, memory=3000)}
    (result,), _ = from_arms(arms)
    assert result.baseline_samples_per_second == pytest.approx(800.0)
    assert result.samples_per_second == pytest.approx(1600.0)
    assert (result.baseline_peak_bytes, result.peak_bytes) == (2000, 3000)
    arms[""]["rows"] = None
    (result,), _ = from_arms(arms)
    assert result.samples_per_second is None


def test_what_a_child_can_judge_is_not_tried_again_in_a_run_of_its_own() -> None:
    no = "the change does not apply to this training"
    arms = {"": tried(40.0, 40.0), "parallel-read": tried(problem=no), "batch-x2": tried(problem=no)}
    assert answered("parallel-read", arms)
    assert not answered("batch-x2", arms)


def test_the_largest_batches_are_an_extra_that_nobody_misses() -> None:
    _, notes = from_arms({"": tried(40.0), "batch-x4": tried(), "batch-x8": tried()})
    assert notes == ("what-if batch-x4: not tried, the budget was spent",)


def test_a_compiled_step_names_its_functions() -> None:
    (result,), _ = from_arms({"": tried(40.0, 40.0), "tf-function": tried(4.0, 4.0, spots=[SPOT])})
    assert [spot.line for spot in result.spots] == [9]
    error = {"type": "AttributeError", "text": "no attribute 'numpy'"}
    _, notes = from_arms({"": tried(40.0, 40.0), "tf-function": tried(error=error)})
    assert notes == ("what-if tf-function: does not compile: no attribute 'numpy'",)


def test_a_clear_gain_of_unknown_size_is_a_gain() -> None:
    (result,), notes = from_arms({"": tried(38.0, 36.0, 40.0), "cached-batch": tried(1.0, 3.0, 0.6)})
    assert result.gain
    assert notes == ()
