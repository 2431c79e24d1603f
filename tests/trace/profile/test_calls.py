"""Steps of profiles that mark none: calls of the function that trains, and of no other."""

from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, host, write
from tflint_gpu.trace.profile import read_profile


def calls(name: str, length: float = 80, count: int = 5):
    return [at(name, number * 100, length, tf_function_call="notTraced-nonXla") for number in range(count)]


def later(events, by: float):
    return [(name, start + by, length, about) for name, start, length, about in events]


def seen(tmp_path: Path, *events, **lines):
    return read_profile(write(tmp_path / "h.xplane.pb", host({"python": list(events), **lines})))


@pytest.mark.parametrize("name", ["train_step", "one_step_on_iterator", "multi_step_on_iterator", "my_train"])
def test_a_function_that_trains_by_its_name(tmp_path: Path, name: str):
    found = seen(tmp_path, *calls(name))
    assert found.seen_as == "calls"
    assert [round(step.step_ms, 3) for step in found.steps] == [0.1, 0.1, 0.1, 0.1, 0.08]
    assert any(name in note for note in found.notes)


@pytest.mark.parametrize("op", ["gradient_tape/dense/MatMul:MatMul", "Adam/Update:ResourceApplyAdam"])
def test_a_function_that_trains_by_what_it_runs(tmp_path: Path, op: str):
    assert seen(tmp_path, *calls("update"), tf_Compute=[at(op, 110, 5)]).seen_as == "calls"


@pytest.mark.parametrize(
    "events",
    [
        calls("test_step"),
        calls("predict_step"),
        calls("act"),
        calls("train_step", count=2),
        [
            *calls("train_step", 10),
            *(at("act", n * 100 + 20, 70, tf_function_call="notTraced-nonXla") for n in range(5)),
        ],
        [at("work", 0, 500)],
    ],
    ids=["validation", "prediction", "not known to train", "too few", "not what takes the time", "no functions"],
)
def test_other_calls_are_no_steps(tmp_path: Path, events):
    found = seen(tmp_path, *events, tf_Compute=[at("dense/MatMul:MatMul", 110, 5)])
    assert found.seen_as == "time"
    assert len(found.steps) == 1


def test_marks_come_first(tmp_path: Path):
    found = seen(tmp_path, *(at("train", n * 200, 190, step_num=n) for n in range(3)), *calls("train_step"))
    assert found.seen_as == "marker"
    assert len(found.steps) == 3
