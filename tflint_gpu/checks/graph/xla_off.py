"""TFG606: training that XLA could compile and does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.graph.jit_silently_disabled import WITHOUT_JIT
from tflint_gpu.checks.shapes import varying_lengths
from tflint_gpu.checks.verdicts import by_repair
from tflint_gpu.findings import Finding, Fix, Severity, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Region
from tflint_gpu.program.history import exists, first_existing
from tflint_gpu.program.values import Const, GraphFunction
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.findings import Location
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Layers that cuDNN runs faster than XLA does, and ones that XLA cannot compile.
_BETTER_WITHOUT = (
    WITHOUT_JIT
    | {
        f"keras.layers.{name}"
        for name in ("LSTM", "GRU", "CuDNNLSTM", "CuDNNGRU", "Bidirectional", "RNN", "Lambda", "StringLookup")
    }
    | {f"keras.layers.{name}" for name in ("TextVectorization", "IntegerLookup", "Hashing", "HashedCrossing")}
)

_FUNCTION_OPTIONS = ("jit_compile", "experimental_compile")


class XlaOff(Check):
    """Reports XLA that is switched off, and at hint level, steps that do not ask for it."""

    needles = ("jit_compile", "set_jit", "compile(", "GradientTape")
    experiments = ("xla",)

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield explicit switches at info, absent ones (Keras 2, steps of one's own) at hint."""
        if not program.target.on_tensorflow or _distributes(program):
            return
        for call in program.calls_to("keras.Model.compile"):
            severity = self._compile(call, program)
            if severity is not None:
                yield self.at(
                    call.place_of("jit_compile"),
                    "XLA is not used for this model: it would fuse small kernels and save launches. "
                    "Try jit_compile=True and measure.",
                    severity=severity,
                    qualname=call.qualname,
                    fix=self._compiled(call, program),
                )
        for call in program.calls_to("tf.config.optimizer.set_jit"):
            value = call.argument("enabled")
            if isinstance(value, Const) and value.value is False and not value.soft:
                yield self.at(
                    call,
                    "XLA's auto-clustering is switched off here: small kernels stay apart, each with its own "
                    "launch. Try True and measure.",
                    fix=self._rewritten(call.place_of("enabled", 0)),
                )
        yield from self._steps(program)

    def _compiled(self, call: Call, program: Program) -> Fix | str:
        """Keras 3 decides well by itself; Keras 2 has to be told."""
        value = call.argument("jit_compile")
        if isinstance(value, Const) and value.soft:
            return "a default that the user may override switches XLA off"
        if value is None:
            return self._asked(call.location)
        if program.target.legacy_keras:
            return self._rewritten(call.place_of("jit_compile"))
        title = "leave jit_compile to Keras, which uses XLA where it can"
        return self.change("drop-arguments", call.location, title, safety="unsafe", names="jit_compile")

    def _rewritten(self, place: Location) -> Fix:
        return self.change(
            "rewrite", place, "say True instead of False", safety="unsafe", text="True", literal="yes"
        )

    def _asked(self, place: Location, option: str = "jit_compile") -> Fix:
        return self.change("add-option", place, f"pass {option}=True", safety="unsafe", name=option, value="True")

    def _compile(self, call: Call, program: Program) -> Severity | None:
        model, value = call.receiver, call.argument("jit_compile")
        if call.constant("run_eagerly") is True or better_without(model):
            return None
        if isinstance(value, Const) and value.value is False:
            # A literal False is meant for this model; that some layer of it is the project's own changes little.
            read = isinstance(model, Model) and (model.complete or bool(model.layers))
            known = read and not value.soft
            return Severity.INFO if known else Severity.HINT
        absent = value is None and not call.open
        keras2 = program.target.legacy_keras and exists(program.target, "keras.Model.compile", "jit_compile")
        return Severity.HINT if absent and keras2 and isinstance(model, Model) and model.complete else None

    def _steps(self, program: Program) -> Iterator[Finding]:
        seen = set()
        option = first_existing(program.target, "tf.function", *_FUNCTION_OPTIONS) or _FUNCTION_OPTIONS[0]
        blocked = any(better_without(model) for model in program.models)
        for step in program.steps:
            function = _graph_of(step.apply)
            if function is None or function in seen or blocked or not _is_unset(function):
                continue
            seen.add(function)
            if any(varying_lengths(value) for call in function.calls for value in call.args):
                continue
            off = any(option in function.options for option in _FUNCTION_OPTIONS)
            yield self.at(
                function.made,
                "This training step is not compiled by XLA, which would fuse small kernels and save launches. "
                f"Try {option}=True and measure.",
                severity=Severity.INFO if off else Severity.HINT,
                fix=self._rewritten(function.made.place_of(option))
                if option in function.options
                else self._asked(function.made.location, option),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the run with XLA on; a step that was compiled anyway refutes the finding."""
        if evidence.facts.get("jit") is True:
            return Judgement(Verdict.REFUTED)
        failed = next((note for note in evidence.notes if note.startswith("what-if xla: does not compile")), None)
        if failed is not None:
            lacking = failed.rpartition(": ")[2]
            message = f"XLA cannot compile this step ({lacking}): leave it as it is."
            return Judgement(Verdict.REFUTED, message=message)
        return by_repair(evidence.experiment("xla"))


def better_without(model: object) -> bool:
    """Say whether `model` has a layer that runs faster without XLA, or cannot run with it."""
    return isinstance(model, Model) and any(layer.callee in _BETTER_WITHOUT for layer in model.layers)


def _distributes(program: Program) -> bool:
    return any(call.callee.startswith("tf.distribute.") and "Strategy" in call.callee for call in program.calls)


def _graph_of(call: Call) -> GraphFunction | None:
    """Return the innermost graph function around `call`."""
    owners = (frame.owner for frame in call.context if isinstance(frame, Region) and frame.kind == "graph")
    return next((owner for owner in owners if isinstance(owner, GraphFunction)), None)


def _is_unset(function: GraphFunction) -> bool:
    """Say whether the function leaves XLA off: the option absent, None or False."""
    for name in _FUNCTION_OPTIONS:
        option = function.options.get(name)
        if option is not None:
            return isinstance(option, Const) and not option.value
    return True
