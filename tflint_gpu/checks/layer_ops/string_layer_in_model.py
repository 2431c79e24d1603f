"""TFG502: text, look-up tables or decoding inside the trained model, where only the CPU can do them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import is_symbolic, place_of_layer
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.first_layers import to_map
from tflint_gpu.checks.steps import hides_gpus, in_training_step, judge_placement, loudest
from tflint_gpu.findings import Finding, Fix, Location, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Produced

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_LOOKUPS = ("LookupTableFindV2", "LookupTableFind")
_HASHES = ("StringToHashBucketFast", "StringToHashBucketStrong", "AsString", "SparseCross", "SparseCrossHashed")

#: Layers whose ops have no GPU kernel, with the ops to look for in a trace.
LAYERS: dict[str, tuple[str, ...]] = {
    "keras.layers.TextVectorization": (
        *_LOOKUPS,
        "StringSplitV2",
        "StringLower",
        "StaticRegexReplace",
        "RegexReplace",
    ),
    "keras.layers.StringLookup": _LOOKUPS,
    "keras.layers.IntegerLookup": _LOOKUPS,
    "keras.layers.Hashing": _HASHES,
    "keras.layers.HashedCrossing": _HASHES,
    "keras.layers.DenseFeatures": (*_LOOKUPS, *_HASHES),
}

#: Feature columns that look text up or hash it; plain numeric columns stay on the GPU.
_TEXT_COLUMNS = ("categorical_column_with_", "crossed_column")

#: Functions on text, tables and encoded images.
FUNCTIONS = ("tf.strings.", "tf.lookup.", "tf.as_string", "tf.io.decode_", "tf.io.parse_", "tf.image.decode_")

#: Constructors and helpers among them that put no op into the step.
_NO_OP = ("Initializer", "HashTable", "VocabularyTable", "FixedLenFeature", "VarLenFeature")


class StringLayerInModel(Check):
    """A text or look-up layer, or a call on strings, that belongs to the trained model."""

    needles: ClassVar[tuple[str, ...]] = (
        *(name.rpartition(".")[2] for name in LAYERS),
        "strings.",
        "lookup",
        "as_string",
        "decode_",
        "parse_",
    )

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield such layers where the trained model applies them, and such calls in its forward pass or step."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._layers(program), *self._functions(program)))

    def _layers(self, program: Program) -> Iterator[Finding]:
        for model in program.models:
            if not model.trained:
                continue
            for made in model.layers:
                if made.callee in LAYERS and _works_on_text(made):
                    fix = to_map(model, [made], program, text=True)
                    yield self._layer(place_of_layer(made, model, program), made, fix)
        for call in program.calls_to("keras.layers.Layer.__call__"):
            layer = call.receiver
            if not isinstance(layer, Produced) or layer.callee not in LAYERS or not _works_on_text(layer.call):
                continue
            if "model" in call.context.regions and not is_symbolic(call) and in_training_step(call, program):
                yield self._layer(call.location, layer.call, "only layers listed in a sequential model are moved")

    def _layer(self, place: Location, made: Call, fix: Fix | str) -> Finding:
        name = made.callee.rpartition(".")[2]
        return self.at(
            place,
            f"{name} in the trained model runs on the CPU in every step while the GPU waits, and keeps XLA off; "
            "apply it in Dataset.map",
            qualname=made.qualname,
            fix=fix,
            ops=LAYERS[made.callee],
            replayed=True,
        )

    def _functions(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_where(lambda name: name.startswith(FUNCTIONS) and not name.endswith(_NO_OP)):
            if in_training_step(call, program) and not call.context.scope("device"):
                name = call.callee.removeprefix("tf.").replace("()", "")
                severity = None if program.trains() else Severity.INFO
                message = (
                    f"{name} in the step runs on the CPU while the GPU waits for its result; do it in Dataset.map"
                )
                yield self.at(call, message, severity=severity)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that look-ups and string ops take on the CPU in each step."""
        return judge_placement(finding, evidence)


def _works_on_text(made: Call) -> bool:
    """Say whether the layer has text or tables in it: of feature columns only the categorical ones do."""
    if made.callee != "keras.layers.DenseFeatures":
        return True
    parts = walk(made.argument("feature_columns", 0))
    return any(isinstance(part, Produced) and any(word in part.callee for word in _TEXT_COLUMNS) for part in parts)
