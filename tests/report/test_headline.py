"""The trace in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.report.conftest import evidence
from tflint_gpu.findings import Finding, Verdict
from tflint_gpu.report.headline import headline
from tflint_gpu.trace.evidence import Device, Environment, Evidence, Step, WhatIf


def steps(**buckets: float) -> tuple[Step, ...]:
    return (Step(100.0, 100.0 - sum(buckets.values()), 10.0, buckets),)


def test_gpu_wait_place_and_gain(finding: Callable[..., Finding]) -> None:
    cause = finding("TFG105", ("train.py", 31), verdict=Verdict.CONFIRMED)
    assert headline(evidence(), [cause]) == (
        "GPU busy 22 % of the step; 61 % of it waits for input (train.py:31). One cached batch runs 2.4 × faster."
    )


def test_a_cpu_trace_says_so(finding: Callable[..., Finding]) -> None:
    cause = finding("TFG105", ("a.ipynb", 3, 1, 3, 9, 2), verdict=Verdict.OBSERVED)
    assert headline(evidence(gpu=False), [cause]) == (
        "Traced on a CPU: 61 % of the step waits for input (a.ipynb cell 2:3). One cached batch runs 2.4 × faster."
    )


def test_no_place_without_proof(finding: Callable[..., Finding]) -> None:
    suspicion = finding("TFG105", ("train.py", 31))
    other = finding("TFG501", ("model.py", 1), verdict=Verdict.CONFIRMED)
    assert "61 % of it waits for input." in headline(evidence(), [suspicion, other])


def test_a_cause_comes_before_a_symptom(finding: Callable[..., Finding]) -> None:
    symptom = finding("TFG101", ("train.py", 54), verdict=Verdict.OBSERVED)
    cause = finding("TFG105", ("train.py", 25), verdict=Verdict.CONFIRMED)
    assert "waits for input (train.py:25)." in headline(evidence(), [symptom, cause])


def test_a_profile_folder_is_no_line_of_code(finding: Callable[..., Finding]) -> None:
    symptom = finding("TFG101", ("logs/run1", 1), verdict=Verdict.OBSERVED)
    assert "waits for input." in headline(evidence(), [symptom])


@pytest.mark.parametrize(
    ("buckets", "says"),
    [
        ({"launch": 40.0, "unknown": 50.0}, "GPU busy 10 % of the step; 40 % of it goes into launching kernels."),
        ({"unknown": 50.0, "host": 1.0}, "GPU busy 49 % of the step; 50 % of it is not accounted for."),
        ({"input_wait": 2.0}, "GPU busy 98 % of the step."),
    ],
    ids=["a known wait before an unknown one", "only unknown is large", "nothing is worth saying"],
)
def test_largest_wait(buckets: dict[str, float], says: str) -> None:
    assert headline(evidence(steps=steps(**buckets), what_if=()), []) == says


def what_if(low: float, change: str = "cached-batch") -> tuple[WhatIf, ...]:
    return (WhatIf(change, 40.0, 41.0, low + 0.02, 5, 0.02, low, low + 0.04),)


def test_no_gain_is_told_of_the_cached_batch_alone() -> None:
    told = headline(evidence(what_if=what_if(0.99)), [])
    assert told.endswith("One cached batch is not measurably faster: input does not hold the step up.")
    assert headline(evidence(what_if=what_if(0.99, "xla")), []).endswith("waits for input.")


def test_a_small_gain_keeps_two_digits() -> None:
    assert headline(evidence(what_if=what_if(1.02, "xla")), []).endswith("With XLA it runs 1.04 × faster.")


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        (True, "GPU not traced; what the step waits for was not measured."),
        (False, "Traced on a CPU: what the step waits for was not measured."),
    ],
)
def test_steps_without_a_profile_are_not_called_free_of_waits(gpu: bool, says: str) -> None:
    blind = replace(evidence(gpu=gpu), steps=(), what_if=())
    assert blind.window is not None
    assert headline(blind, []) == says


def test_a_gpu_that_was_not_traced_is_not_idle() -> None:
    blind: Evidence = replace(evidence(), environment=Environment(device=Device("H200", "gpu", traced=False)))
    assert headline(blind, []).startswith("GPU not traced;")


def test_no_step_no_figures() -> None:
    assert headline(evidence(window=None, steps=()), []) == "The trace saw no training step."


def test_a_cached_batch_within_wide_noise_clears_nobody() -> None:
    wide = (WhatIf("cached-batch", 40.0, 41.0, 1.2, 2, 0.8, 0.5, 3.0),)
    assert headline(evidence(what_if=wide), []).endswith("waits for input.")


def test_input_that_the_trace_itself_began_anew_is_no_wait_of_the_program() -> None:
    told = headline(evidence(steps=steps(input_wait=60.0, host=20.0), facts={"input_restarted": True}), [])
    assert "waits for input" not in told
    assert "20 % of it runs on the host" in told
