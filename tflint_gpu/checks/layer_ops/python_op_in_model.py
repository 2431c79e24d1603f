"""TFG503: Python code in the model, the loss, a metric or the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.dtypes import counts
from tflint_gpu.checks.generators import callable_function
from tflint_gpu.checks.loops import in_scope_of, judge_eager
from tflint_gpu.checks.map_functions import PYTHON_LIBRARIES, PYTHON_WRAPPERS
from tflint_gpu.checks.steps import hides_gpus, in_training_step, judge_placement, loudest
from tflint_gpu.findings import Finding, Location, Related
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Region
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Choice, Function, Items, Operation, Produced, Tensor, Value

if TYPE_CHECKING:
    from tflint_gpu.program.context import Guard
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Op types that run Python, whatever device they are registered for.
_PYTHON_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")

_WRAPPERS = frozenset(name.rpartition(".")[2] for name in PYTHON_WRAPPERS)

#: Calls that take a tensor's numbers out of it.
_READS = ("tf.Tensor.numpy", "tf.Variable.numpy", "keras.backend.get_value", "keras.ops.convert_to_numpy")

#: NumPy functions that make arrays by size or turn axes: what they are given is a shape, whatever it looks like.
_SHAPE_WORK = frozenset(
    f"numpy.{name}"
    for name in (
        *("arange", "zeros", "ones", "full", "empty", "eye", "identity", "linspace", "meshgrid", "indices", "tri"),
        *("roll", "prod", "ceil", "floor", "log2", "isscalar", "ndim", "shape", "size"),
    )
)

_WRAPPED = (
    "{what} in the step runs Python: the GPU's results go to the host, wait for the interpreter and come back, "
    "and XLA refuses it; use TensorFlow ops"
)
_EAGER = (
    "{what} of a tensor in the step works only op by op (run_eagerly): Python reads it in every step while the "
    "GPU waits; use TensorFlow ops"
)


class PythonOpInModel(Check):
    """``py_function``, NumPy or another Python library at work on tensors of the training step."""

    needles: ClassVar[tuple[str, ...]] = (
        *("py_function", "numpy_function", "py_func", "numpy", "get_value"),
        *sorted(PYTHON_LIBRARIES),
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield such calls in model, loss, metric and step; in the dataset python-op-in-map speaks of them."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        wrapped: set[Location] = set()
        for call in program.calls_to(*sorted(PYTHON_WRAPPERS)):
            function = callable_function(call.argument("func", 0))
            if function is not None:
                wrapped.add(function.location)
            if in_training_step(call, program) and not _called_by_hand(call):
                related = (Related(function.location, "this is the Python code"),) if function else ()
                yield self.at(call, _WRAPPED.format(what=call.callee), related=related, ops=_PYTHON_OPS)
        for call in program.calls_where(_may_be_python):
            what = _python(call)
            if what is None or not in_training_step(call, program):
                continue
            # Inside a wrapper the tensors are arrays already; host-sync-in-step speaks of eager loops.
            running = [frame.function for frame in call.context.activations]
            inside = any(function.location in wrapped or _is_wrapped(function) for function in running)
            asks = any(map(_asks_for_eager, call.context.all_guards))
            if not inside and call.context.region and not asks and not _called_by_hand(call):
                yield self.at(call, _EAGER.format(what=what))

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time of the Python ops in each step, or by what running op by op costs."""
        return judge_placement(finding, evidence) if finding.detail.get("ops") else judge_eager(evidence)


def _is_wrapped(function: Function) -> bool:
    """Say whether ``@tf.numpy_function(Tout=…)`` or kin decorates `function`."""
    return any(
        isinstance(part, ast.Attribute | ast.Name) and ast.unparse(part).rpartition(".")[2] in _WRAPPERS
        for decorator in getattr(function.node, "decorator_list", ())
        for part in ast.walk(decorator)
    )


def _may_be_python(name: str) -> bool:
    """Say whether what is called `name` hands its arguments, or its receiver, to Python."""
    head = name.partition(".")[0]
    # Code for several backends has a branch for each: PyTorch's own is never TensorFlow's.
    library = head in PYTHON_LIBRARIES and not head.startswith("torch")
    return name in _READS or ((head == "numpy" or library) and name not in _SHAPE_WORK)


def _python(call: Call) -> str | None:
    """Say in words how `call` hands tensors of the step to Python; None where it does not."""
    name = call.callee
    if name in _READS:
        value = call.receiver if name.endswith(".numpy") else call.args[0] if call.args else None
        return f".{name.rpartition('.')[2]}()" if _of_step(value) else None
    given = (*call.args, *call.kwargs.values())
    return name.replace("numpy.", "np.", 1).replace("()", "") if any(map(_of_step, given)) else None


def _of_step(value: Value | None) -> bool:
    """Say whether `value` is certainly a tensor that the step computes, and no shape or constant from outside."""
    match value:
        case Tensor(symbolic=True):
            return False
        case Tensor(origin=Call() as origin):
            made_here = bool(origin.context.region) and "dataset" not in origin.context.regions
            return made_here and not counts(value) and any(map(_has_tensor, (*origin.args, origin.receiver)))
        case Tensor(origin=None, parents=()):
            return True
        case Tensor(origin=None, parents=parts) | Operation(operands=parts) | Items(items=parts):
            return any(map(_of_step, parts))
        case Choice(options=options):
            return all(map(_of_step, options))
        case _:
            return False


def _has_tensor(value: Value | None) -> bool:
    return any(isinstance(part, Tensor) for part in walk(value))


def _called_by_hand(call: Call) -> bool:
    """Say whether the model is applied outside any step: to show or save what it makes."""
    regions = [frame for frame in call.context if isinstance(frame, Region)]
    return (
        bool(regions)
        and regions[-1].kind == "model"
        and regions[-1].eager
        and not in_scope_of(call.context, "tape")
    )


def _asks_for_eager(guard: Guard) -> bool:
    """Say whether a branch asks how the code runs: ``if tf.executing_eagerly()``, ``if hasattr(x, "numpy")``."""
    asks = (
        "tf.executing_eagerly",
        "builtins.hasattr",
        "builtins.isinstance",
        "tf.is_tensor",
        "tf.inside_function",
    )
    return any(isinstance(part, Produced) and part.callee in asks for part in walk(guard.test))
