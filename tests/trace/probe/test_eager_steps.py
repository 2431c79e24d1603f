"""Which function is an eager step, and its exchange; nothing here starts TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tflint_gpu.trace.probe.arms import NOT_HERE
from tflint_gpu.trace.probe.clock import DONE, WARMUP
from tflint_gpu.trace.probe.eager_steps import GONE, LOOSE, SWITCHED, EagerSteps, stand_in

UPDATE = {"path": "train.py", "line": 20, "cell": None, "function": "step"}


class Graph:
    """What stands for a ``tf.function``: it counts its calls and runs the function, or fails as `problem`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0
        self.traced = 1
        self.problem: Exception | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.problem is not None:
            raise self.problem
        return self.function(*args, **kwargs)

    def experimental_get_tracing_count(self) -> int:
        return self.traced


@pytest.fixture
def steps() -> EagerSteps:
    places = SimpleNamespace(
        is_project=lambda name: name == __file__,
        code_spot=lambda code: {"path": "train.py", "line": code.co_firstlineno, "cell": None, "function": ""},
    )
    config = SimpleNamespace(functions_run_eagerly=lambda: False)
    run = SimpleNamespace(
        places=places,
        in_other_thread=lambda: False,
        clock=SimpleNamespace(phase=WARMUP),
        tensorflow=SimpleNamespace(config=config, function=Graph),
        trials=SimpleNamespace(refused=lambda problem: problems.append(problem), stepped=lambda _spot: None),
        functions=SimpleNamespace(
            record_of=lambda _graph: SimpleNamespace(causes=["shape of argument 1 changed"])
        ),
    )
    problems: list[Exception] = []
    run.problems = problems
    return EagerSteps(run, True)


@pytest.fixture
def step(steps: EagerSteps) -> Iterator[Callable[[], int]]:
    """A step that was seen while the run warmed up, and is compiled."""

    def step() -> int:
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", UPDATE)
        return 7

    # Of its own: the steps of other tests, which may still be there, would be compiled with it.
    step.__code__ = step.__code__.replace()
    for _ in range(4):
        step()
    assert steps.compile() == ""
    assert len(steps.compiled) == 1
    yield step
    steps.put_back()


def test_the_function_that_holds_tape_and_update_is_compiled_under_all_its_names(steps: EagerSteps) -> None:
    weight = 3

    def step(number: int, *, scale: int = 1) -> int:
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", UPDATE)
        return number * scale * weight

    other_name = step
    for number in range(4):
        step(number)
    assert steps.compile() == ""
    (compiled,) = steps.compiled
    assert (step(2), other_name(2, scale=5)) == (6, 30)
    assert (compiled.graph.calls, compiled.called) == (2, True)
    steps.put_back()
    assert step(2) == 6
    assert compiled.graph.calls == 2
    assert steps.spots()[0]["line"] == step.__code__.co_firstlineno


class Trainer:
    def __init__(self, steps: EagerSteps) -> None:
        self.steps = steps

    def train(self, number: int) -> int:
        self.update()
        return number

    def update(self) -> None:
        self.steps.saw("gradient", UPDATE)
        self.steps.saw("optimizer", UPDATE)


def test_a_method_is_found_in_whatever_object_it_is_called(steps: EagerSteps) -> None:
    for number in range(3):
        Trainer(steps).train(number)
    assert steps.compile() == ""
    try:
        Trainer(steps).train(1)
        assert [each.graph.calls for each in steps.compiled] == [1]
        assert steps.compiled[0].code.co_name == "update"
    finally:
        steps.put_back()


def test_a_step_that_stands_in_its_loop_is_no_function(steps: EagerSteps) -> None:
    def train() -> None:
        for _ in range(4):
            steps.saw("gradient", UPDATE)
            steps.saw("optimizer", UPDATE)

    train()
    assert steps.compile() == LOOSE


def test_tape_and_update_in_two_functions_are_no_step(steps: EagerSteps) -> None:
    def train() -> None:
        for _ in range(4):
            gradients()
            steps.saw("optimizer", UPDATE)

    def gradients() -> None:
        steps.saw("gradient", UPDATE)

    train()
    assert steps.compile() == LOOSE


def test_a_function_that_draws_from_a_dataset_is_the_loop(steps: EagerSteps) -> None:
    def epoch() -> None:
        steps.drew()
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", UPDATE)

    for _ in range(4):
        epoch()
    assert steps.compile() == LOOSE


def test_a_generator_is_no_step(steps: EagerSteps) -> None:
    def step() -> Iterator[int]:
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", UPDATE)
        yield 1

    for _ in range(4):
        next(step())
    assert steps.compile() == LOOSE


def test_a_step_in_a_step_is_compiled_with_it(steps: EagerSteps) -> None:
    def outer() -> None:
        inner()
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", {**UPDATE, "line": 30})

    def inner() -> None:
        steps.saw("gradient", UPDATE)
        steps.saw("optimizer", UPDATE)

    for _ in range(4):
        outer()
    assert steps.compile() == ""
    assert [each.code.co_name for each in steps.compiled] == ["outer"]
    steps.put_back()


def test_updates_by_hand_are_steps_too(steps: EagerSteps) -> None:
    def step() -> None:
        steps.saw("gradient", UPDATE)

    for _ in range(4):
        step()
    assert steps.compile() == ""
    steps.put_back()


def test_what_cannot_be_traced_runs_as_it_is_and_is_told(steps: EagerSteps, step: Callable[[], int]) -> None:
    steps.compile()
    problem = AttributeError("no attribute 'numpy'")
    steps.compiled[0].graph.problem = problem
    assert step() == 7
    assert steps.run.problems == [problem]
    assert step() == 7
    assert steps.compiled[0].graph.calls == 1


def test_an_error_of_a_step_that_did_compile_is_the_programs(steps: EagerSteps, step: Callable[[], int]) -> None:
    step()
    steps.compiled[0].graph.problem = ValueError("negative loss")
    with pytest.raises(ValueError, match="negative loss"):
        step()


def test_a_step_that_is_traced_anew_every_time_is_no_sample(steps: EagerSteps, step: Callable[[], int]) -> None:
    assert steps.unsettled(4) == GONE
    step()
    steps.count()
    steps.compiled[0].graph.traced += 1
    assert steps.unsettled(4) == ""
    steps.compiled[0].graph.traced += 3
    assert "shape of argument 1 changed" in steps.unsettled(4)


def test_nothing_is_looked_at_after_the_warm_up_or_unasked(steps: EagerSteps) -> None:
    steps.run.clock.phase = DONE
    for _ in range(4):
        Trainer(steps).train(1)
    assert steps.compile() == NOT_HERE
    unasked = EagerSteps(steps.run, False)
    steps.run.clock.phase = WARMUP
    for _ in range(4):
        Trainer(unasked).train(1)
    assert unasked.candidates == {}


def test_a_switch_that_has_all_functions_run_eagerly(steps: EagerSteps) -> None:
    steps.run.tensorflow.config.functions_run_eagerly = lambda: True
    assert steps.compile() == SWITCHED


def test_free_variables_do_not_hinder_the_exchange() -> None:
    first, second = 1, 2

    def plain(left: int, right: int = 0) -> int:
        return left + right + first + second

    own = plain.__code__
    plain.__code__ = stand_in(own, lambda *args, **kwargs: (args, kwargs))
    given: Any = plain(4, right=5)
    assert given == ((4,), {"right": 5})
    plain.__code__ = own
    assert plain(4, right=5) == 12
