"""TFG506: a loop over the batch or over time inside the step, where one batched op would do."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from tflint_gpu.checks.architecture import near
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.op_time import judge_loop
from tflint_gpu.checks.steps import (
    compiled,
    hides_gpus,
    in_training_step,
    is_slice,
    loops_in_step,
    loudest,
    made_by_op,
)
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.program.questions import constant
from tflint_gpu.program.values import (
    Choice,
    Dataset,
    Instance,
    Items,
    Mapping,
    Operation,
    Produced,
    Subscript,
    Tensor,
    Unknown,
)
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Loop
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Loops over the leading dimension: each row is on its own, so one batched op can do all of them.
MAPS = ("tf.map_fn", "keras.backend.map_fn", "keras.ops.map")

#: Loops that carry state from round to round: often there is no closed form.
CARRIED = (
    "tf.scan",
    "tf.foldl",
    "tf.foldr",
    "tf.while_loop",
    "tf.compat.v1.foldl",
    "tf.compat.v1.foldr",
    "keras.backend.foldl",
    "keras.backend.foldr",
    "keras.ops.scan",
    "keras.ops.while_loop",
    "keras.ops.fori_loop",
    "keras.ops.associative_scan",
)

#: Rounds up to which a loop is no loop worth a word: critic steps, scales of a pyramid, colour channels.
FEW = 4

#: Rounds up to which a comprehension is told softly: levels of a pyramid, heads.
SOME = 8

#: Values that a slice may be, or be a part of.
_COMPOSED = (Tensor, Items, Operation, Choice, Subscript, Mapping)

#: What a loop may go over without that its variable takes a tensor apart.
_UNDRAWN = (NoneType, Unknown, Items, Mapping, Choice, Dataset)

_RANGES = ("builtins.range", "tf.range", "builtins.enumerate", "builtins.zip")


class MapFnInStep(Check):
    """A ``map_fn``, a scan or a Python loop over slices of a tensor in the training step."""

    needles: ClassVar[tuple[str, ...]] = (
        "map_fn",
        "scan",
        "fold",
        "while_loop",
        "fori_loop",
        "ops.map",
        "range(",
        "unstack(",
        "for ",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield loops of the step that launch a few small kernels for each row or time step."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._functions(program), *self._loops(program)))

    def _functions(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*MAPS, *CARRIED):
            rounds = _rounds(call.argument("elems", 1))
            if (rounds is not None and rounds <= FEW) or not in_training_step(call, program):
                continue
            name = call.callee.rpartition(".")[2]
            if call.callee in MAPS:
                severity = Severity.INFO if compiled(call, program) == "yes" else None
                message = (
                    f"{name} in the step runs row by row: small kernels one after the other leave the GPU idle; "
                    "use broadcasting, einsum or gather on the whole batch"
                )
            else:
                severity = Severity.INFO
                message = (
                    f"{name} in the step runs round by round with small kernels, and the GPU idles between them; "
                    "if there is a closed form, such as a cumulative op, use it"
                )
            yield self.at(call, message, severity=severity)

    def _loops(self, program: Program) -> Iterator[Finding]:
        tensors: dict[int, list[Tensor]] = {}
        for loop in program.loops:
            if loop.count is not None and loop.count <= FEW:
                continue
            sliced = _first_of_slice(loop, tensors)
            if sliced is None or loop not in loops_in_step(sliced) or not in_training_step(sliced, program):
                continue
            # A comprehension carries no state from round to round; a statement may be a true recurrence.
            apart = loop.kind == "comprehension" and (loop.count is None or loop.count > SOME)
            message = (
                "this loop takes a tensor apart slice by slice, so each round launches small kernels and the GPU "
                "idles between; work on the whole tensor at once"
            )
            yield self.at(
                loop.location, message, severity=None if apart else Severity.INFO, qualname=loop.qualname
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the loop that these lines made: its launches on a GPU, its own time on a CPU."""
        return judge_loop(finding, evidence)


def _rounds(elems: Value | None) -> int | None:
    """Return over how many rows a function maps, where literals say it."""
    if isinstance(elems, Items) and elems.complete and elems.kind == "list":
        return len(elems.items)
    if isinstance(elems, Tensor) and elems.origin is not None and elems.origin.callee == "tf.range":
        count = constant(elems.origin.args[-1]) if len(elems.origin.args) == 1 else None
        return count if isinstance(count, int) else None
    return None


def _own_layer(call: Call) -> bool:
    """Say whether `call` applies a layer that each round has of its own: experts, heads, towers."""
    layer = call.receiver
    made = layer.call if isinstance(layer, (Produced, Model, Instance)) else None
    return made is not None and call.callee.endswith("__call__") and bool(made.context.all_loops)


def _first_of_slice(loop: Loop, tensors: dict[int, list[Tensor]]) -> Call | None:
    """Return the first call in `loop` that takes a slice of a tensor, and is not a layer that each round has.

    `tensors` are those in arguments of calls, by identity: the calls of a loop are those of the loops around it.
    """
    if isinstance(loop.iterable, _UNDRAWN):
        return None
    whole: set[int] = set()
    for call in loop.calls:
        for value in (*call.args, *call.kwargs.values()):
            if not isinstance(value, _COMPOSED) or id(value) in whole:
                continue
            if id(value) not in tensors:
                tensors[id(value)] = [part for part in near(value) if _is_taken(part)]
            if not any(_is_part_of_tensor(part, loop) for part in tensors[id(value)]):
                whole.add(id(value))
            elif not _own_layer(call):
                return call
    return None


def _is_taken(part: Value) -> TypeGuard[Tensor]:
    """Say whether `part` is taken out of other values, and no call's result."""
    return isinstance(part, Tensor) and part.origin is None and bool(part.parents)


def _is_part_of_tensor(part: Tensor, loop: Loop) -> bool:
    """Say whether `part` is a slice of a tensor by the loop's variable, or a row that the loop draws."""
    return is_slice(part, loop) or (len(part.parents) == 1 and _is_row(part.parents[0], loop))


def _is_row(source: Value, loop: Loop) -> bool:
    """Say whether the loop draws from the tensor `source`, alone or beside others in ``zip`` or ``enumerate``."""
    drawn = loop.iterable
    if isinstance(drawn, Produced) and drawn.callee in ("builtins.zip", "builtins.enumerate"):
        tensors: tuple[Value | None, ...] = drawn.call.args
    else:
        tensors = (drawn,)
    return made_by_op(source) and not _is_range(source) and any(source is tensor for tensor in tensors)


def _is_range(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.origin is not None and value.origin.callee in _RANGES
    return isinstance(value, Produced) and value.callee in _RANGES
