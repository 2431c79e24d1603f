"""What is known of Python input: generators, generator-like objects, image generators and PyDatasets."""

from __future__ import annotations

from collections.abc import Iterator

from tflint_gpu.checks.map_functions import library_call
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.values import Choice, Function, Generator, Instance, Partial, Produced, Value
from tflint_gpu.program.views import Program

#: The class behind ``keras.utils.Sequence`` as well.
PYDATASET = "keras.utils.PyDataset"

_IMAGE_GENERATOR = "ImageDataGenerator()."
_SIMULATORS = ("gym", "gymnasium", "pettingzoo", "dm_control", "tf_agents", "retro", "pybullet", "mujoco")


def is_pydataset(value: Value | None) -> bool:
    """Say whether `value` is an object of a project class that descends from PyDataset (or Sequence)."""
    return isinstance(value, Instance) and value.cls.is_a(PYDATASET)


def image_flow(value: Value | None) -> Call | None:
    """Return the ``ImageDataGenerator().flow…`` call that made `value`, also where ``zip`` pairs it; else None."""
    if isinstance(value, Produced):
        if _IMAGE_GENERATOR + "flow" in value.callee:
            return value.call
        if value.callee == "builtins.zip":
            return next((flow for part in value.call.args if (flow := image_flow(part))), None)
    return None


def generator_function(value: Value | None) -> Function | None:
    """Return the function that makes the elements of `value`: a generator's body, or an object's ``__next__``."""
    if isinstance(value, Generator):
        return value.function
    if isinstance(value, Instance) and not is_pydataset(value):
        method = value.cls.find("__next__")
        return method if isinstance(method, Function) else None
    return None


def is_python_input(value: Value | None) -> bool:
    """Say whether `value` surely makes batches in Python: a generator, an image generator or a PyDataset."""
    choices = options_of(value)
    return bool(choices) and all(
        is_pydataset(choice) or image_flow(choice) is not None or generator_function(choice) is not None
        for choice in choices
    )


def callable_function(value: Value | None) -> Function | None:
    """Return the project function behind `value`, through partials and single-branch choices."""
    while isinstance(value, Partial):
        value = value.function
    if isinstance(value, Choice):
        functions = [option for option in value.options if isinstance(option, Function)]
        return functions[0] if len(functions) == len(value.options) else None
    return value if isinstance(value, Function) else None


def calls_inside(program: Program, function: Function) -> Iterator[Call]:
    """Yield the calls that the body of `function` makes, through the functions that it calls.

    What a method of a common base does for other classes than that of `function` is left out.
    """
    for call in program.calls:
        if any(_runs(frame.function, function) for frame in call.context.activations):
            yield call


def _runs(running: Function, function: Function) -> bool:
    if running.node is not function.node:
        return False
    mine, other = function.bound, running.bound
    return not (isinstance(mine, Instance) and isinstance(other, Instance)) or mine.cls is other.cls


def costly(calls: list[Call]) -> Call | None:
    """Return the first call that makes a sample dear: a file read, a library's work on it, an image generator."""
    return next((call for call in calls if library_call(call) or _IMAGE_GENERATOR in call.callee), None)


def simulates(calls: list[Call]) -> bool:
    """Say whether the samples come from a simulation, so that they cannot exist beforehand."""
    return any(call.callee.partition(".")[0] in _SIMULATORS for call in calls)
