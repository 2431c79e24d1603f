"""TFG452: GPU memory that rises from step to step, because something keeps tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.loops import drives_environment, guards_within, step_loops
from tflint_gpu.checks.steps import loudest
from tflint_gpu.checks.verdicts import place_of
from tflint_gpu.findings import Finding, Measure, Related, Verdict
from tflint_gpu.program.context import Activation, Loop
from tflint_gpu.program.values import Items, Tensor

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.modules import Module
    from tflint_gpu.program.values import Value
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Calls whose result is as large as a batch or a model; a loss is one number, and keeping it is harmless.
_LARGE = frozenset({"keras.Model.__call__", "keras.layers.Layer.__call__", "tf.GradientTape.gradient"})

#: Ops that hand on what is as large as their input.
_PASSING = frozenset(
    {"tf.nn.softmax", "tf.nn.sigmoid", "tf.sigmoid", "tf.identity", "tf.cast", "tf.stop_gradient", "tf.concat"}
)

#: Methods that empty a list.
_EMPTIES = frozenset({"clear", "pop", "popleft", "remove"})

#: A rise in fewer steps than this is noise; one in hardly any refutes the suspicion.
OFTEN, SELDOM = 0.8, 0.2

#: A rise that needs more steps than this to fill the GPU is nobody's concern.
FAR = 1_000_000


class MemoryCreep(Check):
    """A list that outlives the epochs and takes a large tensor in every step; or memory that a trace sees rise."""

    needles: ClassVar[tuple[str, ...]] = ("GradientTape", "apply_gradients", "minimize")
    only_on_gpu: ClassVar[str] = "how its memory grows"

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield appends of large tensors, in every training step, to lists that no epoch empties."""
        if program.target.on_tensorflow:
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        drivers = step_loops(program)
        for call in program.calls_to("builtins.list.append"):
            context = call.context
            loop = next((loop for loop in context.all_loops if loop in drivers), None)
            if loop is None or context.in_graph or context.debug or not _is_large(call.args[0]):
                continue
            if guards_within(context, loop) or drives_environment(loop):
                continue  # a branch may keep a few samples on purpose; an episode's tensors are used up after it
            outermost = _kept_through(call)
            if outermost is None:
                continue
            name = _name_of(call)
            yield self.at(
                call,
                f"{name} keeps this tensor of every step, and no epoch empties it: GPU memory fills up until "
                "training fails; keep a number (float(...)) or a running mean instead",
                related=(Related(outermost.location, "in every round of this loop"),),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the least memory in use within each step: a leak raises it from step to step."""
        rise = _rise(evidence)
        if rise is None:
            return None
        growth, rising, left = rise
        measures = (Measure("growth_per_step", round(growth), "B"), Measure("steps_that_rise", round(rising, 3)))
        if rising <= SELDOM or growth <= 0:
            return Judgement(Verdict.REFUTED, measures)
        if rising < OFTEN:
            return None
        figures = (*measures, Measure("steps_until_full", round(left)))
        return Judgement(Verdict.CONFIRMED if left < FAR else Verdict.MINOR, figures)

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding where memory rises in nearly every step, fast enough to matter."""
        rise = _rise(evidence)
        if rise is None or rise[0] <= 0 or rise[1] < OFTEN or rise[2] >= FAR:
            return
        growth, rising, left = rise
        yield self.at(
            place_of(evidence),
            f"GPU memory in use rises by {growth / 2**20:.3g} MiB a step and is full after {left:.0f} more: "
            "something keeps tensors of past steps; look for lists, attributes and closures that hold them.",
        ).with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("growth_per_step", round(growth), "B"),
                Measure("steps_that_rise", round(rising, 3)),
                Measure("steps_until_full", round(left)),
            ),
        )


def _rise(evidence: Evidence) -> tuple[float, float, float] | None:
    """Return bytes per step, the share of steps that rise, and how many more steps fit; None where not seen."""
    memory = evidence.memory
    if memory is None or memory.growth_bytes is None or memory.rising is None:
        return None
    left = (memory.limit_bytes - memory.peak_bytes) / memory.growth_bytes if memory.growth_bytes > 0 else FAR
    return memory.growth_bytes, memory.rising, left


def _is_large(value: Value) -> bool:
    """Say whether `value` surely is, or holds, a tensor as large as a batch or a model."""
    if isinstance(value, Items):
        return any(_is_large(item) for item in value.items)
    if not isinstance(value, Tensor) or value.symbolic or value.origin is None:
        return False
    if value.origin.callee in _PASSING:
        return any(_is_large(argument) for argument in value.origin.args)
    return value.origin.callee in _LARGE


def _name_of(call: Call) -> str:
    """Return the list as the text names it: ``outputs``, ``self.outputs``; "" where it is no plain name."""
    node = getattr(call.node, "func", None)
    target = node.value if isinstance(node, ast.Attribute) else None
    if isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)):
        return ast.unparse(target)
    return ""


def _kept_through(call: Call) -> Loop | None:
    """Return the outermost loop through which the list surely lives on; None where it may end with an epoch.

    It has to live through two loops, of epochs and of steps, or through one without an end.
    """
    name, tree = _name_of(call), call.module.tree
    if not name or tree is None:
        return None
    loops = _loops_of_list(call, name, tree)
    endless = bool(loops) and loops[-1].kind == "while" and loops[-1].count is None
    return loops[-1] if len(loops) > 1 or endless else None


def _loops_of_list(call: Call, name: str, tree: ast.Module) -> list[Loop]:
    """Return the loops around `call` that surely lie within the life of its list, innermost first."""
    if "." in name:
        emptied = any(_renews(node, name) for function in _functions(tree) for node in ast.walk(function))
        return [] if emptied else list(call.context.all_loops)
    loops: list[Loop] = []
    for frame in call.context:
        if isinstance(frame, Loop):
            body = _loop_at(tree, frame, call.module)
            if body is None or any(_renews(node, name) for node in ast.walk(body)):
                break
            loops.append(frame)
        elif isinstance(frame, Activation):
            node = frame.function.node
            if any(_renews(part, name) for part in ast.walk(node)) or name in _parameters(node):
                break
    return loops


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the functions that may empty an attribute after it was made: all but constructors."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name != "__init__":
            yield node


def _parameters(node: ast.AST) -> set[str]:
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return set()
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _loop_at(tree: ast.Module, loop: Loop, module: Module) -> ast.AST | None:
    """Return the text of `loop`, None where it stands in another file than the list's append."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            place = module.location(node)
            if (place.path, place.cell, place.line) == (
                loop.location.path,
                loop.location.cell,
                loop.location.line,
            ):
                return node
    return None


def _renews(node: ast.AST, name: str) -> bool:
    """Say whether `node` binds `name` anew, deletes it, or empties or cuts its list."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return isinstance(node.ctx, (ast.Store, ast.Del)) and ast.unparse(node) == name
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, (ast.Store, ast.Del)) and ast.unparse(node.value) == name
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTIES:
        return ast.unparse(node.func.value) == name
    return False
