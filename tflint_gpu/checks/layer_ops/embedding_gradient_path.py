"""TFG509: every row of a large table is touched in each step, though a batch uses a few of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import INPUTS
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.op_time import judge_time
from tflint_gpu.checks.sizes import size_of
from tflint_gpu.checks.steps import hides_gpus, in_training_step, loudest, placements_of
from tflint_gpu.findings import Finding, Location, Verdict
from tflint_gpu.program.calls import Call
from tflint_gpu.program.questions import walk
from tflint_gpu.program.values import Const, Produced, Tensor, Value
from tflint_gpu.program.views import literal
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: From this many rows on a pass over the whole table is work worth a word.
LARGE = 100_000

#: A one-hot vector of this length costs more than a look-up, whatever the batch.
WIDE = 10_000

#: Optimizers of Keras 2 that decay their moments for every row, looked up or not (read in Keras 2.10 and 2.15).
_DENSE_MOMENTS = ("adam", "adamw", "nadam", "adamax", "rmsprop", "lion")

_PRODUCTS = ("tf.matmul", "tf.linalg.matmul", "keras.ops.matmul")
_ONE_HOT = ("tf.one_hot", "keras.ops.one_hot", "keras.backend.one_hot")
_LOOKUPS = ("tf.gather", "tf.nn.embedding_lookup", "keras.ops.take")

#: Ops that only read what they look up, however large the table is that they are given.
_READS = ("GatherV2", "ResourceGather", "Gather")


class EmbeddingGradientPath(Check):
    """A large embedding with a dense gradient or update, one-hot vectors in place of a look-up, sparse inputs."""

    needles: ClassVar[tuple[str, ...]] = ("Embedding(", "one_hot(", "gather(", "embedding_lookup", "sparse=True")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield tables of `LARGE` rows and more, by their literal size, and what makes their gradient dense."""
        if program.target.on_tensorflow and not hides_gpus(program) and program.trains():
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        tables = [call for call in program.calls_to("keras.layers.Embedding") if _rows(call) >= LARGE]
        for table in tables:
            yield from self._table(table, program)
        yield from self._densified(program, tables)
        yield from self._one_hot(program)
        yield from self._computed(program)
        yield from self._sparse_input(program)

    def _table(self, table: Call, program: Program) -> Iterator[Finding]:
        owners = [model for model in program.models if table in model.layers]
        if isinstance(table.argument("trainable"), Const) and not table.constant("trainable"):
            return
        if owners and not any(model.trained for model in owners):
            return
        rows, dim = _rows(table), literal(table.argument("output_dim"))
        size = rows * dim * 4 if isinstance(dim, int) else 0
        for word in ("embeddings_regularizer", "embeddings_constraint"):
            value = table.argument(word)
            if value is not None and not (isinstance(value, Const) and value.value is None):
                yield self.at(
                    table.place_of(word),
                    f"{word} goes over all {rows:,} rows in every step, a batch looks up a few: the GPU waits for "
                    "its memory; apply it to the rows looked up",
                    qualname=table.qualname,
                    table_bytes=size,
                )
                return
        cause = _cause(program, [call for model in owners for call in model.compiles])
        if cause:
            yield self.at(
                table,
                f"{cause} {rows:,} rows of this table in every step, a batch looks up a few: the GPU waits for "
                "its memory; trim or hash the vocabulary",
                table_bytes=size,
            )

    def _densified(self, program: Program, tables: list[Call]) -> Iterator[Finding]:
        for call in program.calls_to("tf.convert_to_tensor") if tables else ():
            origins = (part.origin for part in walk(call.argument("value", 0)) if isinstance(part, Tensor))
            if any(origin is not None and origin.callee == "tf.GradientTape.gradient" for origin in origins):
                yield self.at(
                    call,
                    "a dense copy of the gradients has every row of the embedding table, though a batch looks up "
                    "a few: the GPU waits for its memory; keep IndexedSlices",
                )

    def _one_hot(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_PRODUCTS, "keras.layers.Layer.__call__"):
            if call.callee.endswith("__call__") and not _is_dense(call.receiver):
                continue
            width = _one_hot_width(call.args[0]) if call.args else 0
            if width >= WIDE and in_training_step(call, program):
                yield self.at(
                    call,
                    f"one-hot vectors of {width:,} make a product of mostly zeros, and a gradient of the whole "
                    "table, where the GPU needs a look-up; use Embedding or tf.gather",
                )

    def _computed(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*_LOOKUPS):
            table = call.args[0] if call.args else call.argument("params", 0)
            rows = _rows_of_variable(table) if isinstance(table, Tensor) else 0
            if rows >= LARGE and in_training_step(call, program):
                yield self.at(
                    call,
                    f"this looks rows up in a table computed from {rows:,} rows of a variable: all of them are "
                    "computed in every step, and their gradient is dense; look up first, then compute",
                )

    def _sparse_input(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to(*INPUTS):
            product = _dense_fed(call, program) if literal(call.argument("sparse")) is True else ()
            if product:
                yield self.at(
                    call,
                    "a sparse input to Dense makes the GPU sort indices and multiply entry by entry, without XLA; "
                    "make the batch dense in Dataset.map, or feed ids to Embedding",
                    product=product,
                )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time of the ops that go over the whole table, else of those that the line asks for."""
        if "product" in finding.detail:
            return _judge_product(finding.detail["product"], evidence)
        size = finding.detail.get("table_bytes")
        if not size:
            here = placements_of(finding, evidence) if "table_bytes" not in finding.detail else []
            return judge_time(here, evidence, "op_share", "trace: time of this line's ops")
        measured = [p for p in evidence.placements if p.in_step and p.bytes is not None and p.op not in _READS]
        whole = [p for p in measured if (p.bytes or 0) >= size]
        if measured and not whole:
            return Judgement(Verdict.REFUTED)
        return judge_time(whole, evidence, "whole_table_share", "trace: time of ops over the whole table")


def _judge_product(layer: tuple[Location, ...], evidence: Evidence) -> Judgement | None:
    """Judge the product of a sparse input by the ops of its `layer`; little time on a CPU settles nothing."""
    ops = [op for op in evidence.placements if op.in_step and any(touches(op.spot, at) for at in layer)]
    judged = judge_time(ops, evidence, "op_share", "trace: time of the layer's ops")
    if judged is None or judged.verdict is not Verdict.MINOR or evidence.gpu_busy_share is not None:
        return judged
    reason = "short on this CPU; a GPU sorts and copies indices for it in every step"
    return Judgement(Verdict.UNMEASURED, judged.measures, reason=reason)


def _rows(table: Call) -> int:
    rows = literal(table.argument("input_dim"))
    return rows if isinstance(rows, int) else 0


def _cause(program: Program, compiles: list[Call]) -> str:
    """Say who goes over the whole table, as far as the versions tell; "" where the update is sparse."""
    target = program.target
    if target.tensorflow <= (2, 5):
        return "TensorFlow up to 2.5 keeps on the CPU all"
    if not target.legacy_keras:
        # Measured with Keras 3.15: with every optimizer tried a step takes as long as the table is large.
        return "Keras 3 updates all"
    names = {_optimizer(call.argument("optimizer", 0)) for call in compiles}
    applied = {_optimizer(step.apply.receiver) for step in program.steps}
    dense = sorted(name for name in names | applied if name in _DENSE_MOMENTS)
    return f"{dense[0]} of Keras 2 decays its moments for all" if dense else ""


def _optimizer(value: Value | None) -> str:
    if isinstance(value, Const):
        return str(value.value).lower()
    return value.callee.rpartition(".")[2].lower() if isinstance(value, Produced) else ""


def _is_dense(layer: Value | None) -> bool:
    return isinstance(layer, Produced) and layer.callee == "keras.layers.Dense"


def _one_hot_width(value: Value) -> int:
    """Return the length of the one-hot vectors that `value` holds, 0 where it holds none or it is not known."""
    while isinstance(value, Tensor) and value.origin is not None and value.origin.args:
        if value.origin.callee in _ONE_HOT:
            width = literal(value.origin.argument("depth", 1) or value.origin.argument("num_classes", 1))
            return width if isinstance(width, int) else 0
        if value.origin.callee not in ("tf.cast", "tf.reshape", "keras.ops.cast", "keras.ops.reshape"):
            return 0
        value = value.origin.args[0]
    return 0


def _rows_of_variable(table: Tensor) -> int:
    """Return the rows of the variable that a table is computed from, where literals say them."""
    if table.origin is not None and table.origin.callee in ("tf.convert_to_tensor", *_LOOKUPS):
        return 0
    for part in walk(table):
        if isinstance(part, Produced) and part.callee == "tf.Variable" and part.call.args:
            size = size_of(part.call.args[0])
            return (size.rows or 0) if size and len(size.shape) > 1 else 0
    return 0


def _dense_fed(made: Call, program: Program) -> tuple[Location, ...]:
    """Return where the dense layer of a trained model stands that takes the input `made`: made, and applied."""
    for call in program.calls_to("keras.layers.Layer.__call__"):
        first = call.args[0] if call.args else None
        if isinstance(first, Tensor) and first.origin is made:
            layer = call.receiver
            return (layer.call.location, call.location) if isinstance(layer, Produced) and _is_dense(layer) else ()
    for model in program.models:
        given = model.call.argument("layers", 0) if model.call and model.kind == "sequential" else None
        inside = any(isinstance(part, Tensor) and part.origin is made for part in walk(given))
        if (inside or made in model.layers) and model.trained:
            layers = [layer for layer in model.layers if layer.callee not in INPUTS]
            return (layers[0].location,) if layers and layers[0].callee == "keras.layers.Dense" else ()
    return ()
