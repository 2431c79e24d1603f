"""TFG505: an op in the step that has a GPU kernel, but none for the dtype it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.dtypes import counts, dtype_of
from tflint_gpu.checks.steps import compiled, hides_gpus, in_training_step, judge_placement, loudest
from tflint_gpu.findings import Finding, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.kernels import kernel_table
from tflint_gpu.program.values import Const, External, Value

if TYPE_CHECKING:
    from tflint_gpu.program.kernels import KernelTable
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Functions by the op they become, its type attribute and the position of the tensor that sets it.
_OPS: dict[str, tuple[str, str, int]] = {
    name: entry
    for entry, names in {
        ("BatchMatMulV2", "T", 0): "tf.matmul tf.linalg.matmul",
        ("MatMul", "T", 0): "tf.tensordot tf.linalg.matvec",
        ("Einsum", "T", 1): "tf.einsum tf.linalg.einsum",
        ("MaxPool", "T", 0): "tf.nn.max_pool tf.nn.max_pool2d",
        ("AvgPool", "T", 0): "tf.nn.avg_pool tf.nn.avg_pool2d",
        ("ResizeBilinear", "T", 0): "tf.image.resize",
        ("ExtractImagePatches", "T", 0): "tf.image.extract_patches",
        ("ArgMax", "T", 0): "tf.argmax tf.math.argmax",
        ("ArgMin", "T", 0): "tf.argmin tf.math.argmin",
        ("GatherV2", "Tparams", 0): "tf.gather",
        ("GatherNd", "Tparams", 0): "tf.gather_nd",
        ("FloorMod", "T", 0): "tf.math.floormod tf.math.mod",
        ("Mean", "T", 0): "tf.reduce_mean tf.math.reduce_mean",
        ("Pow", "T", 0): "tf.pow tf.math.pow",
        ("MatrixInverse", "T", 0): "tf.linalg.inv",
        ("MatrixSolve", "T", 0): "tf.linalg.solve",
        ("MatrixTriangularSolve", "T", 0): "tf.linalg.triangular_solve",
        ("MatrixDeterminant", "T", 0): "tf.linalg.det",
        ("Cholesky", "T", 0): "tf.linalg.cholesky",
        ("Svd", "T", 0): "tf.linalg.svd",
        ("SelfAdjointEigV2", "T", 0): "tf.linalg.eigh",
        ("TensorScatterAdd", "T", 0): "tf.tensor_scatter_nd_add",
        ("CropAndResize", "T", 0): "tf.image.crop_and_resize",
        ("SegmentSum", "T", 0): "tf.math.segment_sum",
        ("UnsortedSegmentSum", "T", 0): "tf.math.unsorted_segment_sum",
        ("MatrixBandPart", "T", 0): "tf.linalg.band_part",
        ("Where", "T", 0): "tf.where",
    }.items()
    for name in names.split()
}

#: Parameters that hold the tensor where it is given by name.
_TENSOR_NAMES = ("a", "input", "images", "params", "image", "tensor", "x", "data", "condition", "input_tensor")


class DtypeCpuFallback(Check):
    """A call in every training step whose op the GPU has, but not for whole numbers or half precision."""

    needles: ClassVar[tuple[str, ...]] = tuple(sorted({f"{name.rpartition('.')[2]}(" for name in _OPS}))

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield calls in the training step whose tensor has a dtype that no GPU kernel of the op takes."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest(self._suspicions(program))

    def _suspicions(self, program: Program) -> Iterator[Finding]:
        table = kernel_table(program.target.tensorflow)
        for call in program.calls_to(*_OPS):
            op, attribute, position = _op_of(call)
            tensor = _tensor_of(call, position)
            dtype = dtype_of(tensor)
            if dtype is None or table.place(op, {attribute: dtype}) != ("cpu", "dtype"):
                continue
            if counts(tensor) or not in_training_step(call, program):
                continue
            jit = compiled(call, program)
            if jit == "yes":
                continue
            name = call.callee.rpartition(".")[2]
            yield self.at(
                call,
                f"{name} has no GPU kernel for {dtype}: every step copies the tensor to the CPU and back, and the "
                f"GPU waits; cast it to {_instead(op, dtype, table)} before",
                severity=Severity.HINT if jit == "auto" else None,
                ops=(op,) if op != "BatchMatMulV2" else ("BatchMatMulV2", "BatchMatMulV3", "MatMul"),
            )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that the op takes on the CPU in each step."""
        return judge_placement(finding, evidence)


def _op_of(call: Call) -> tuple[str, str, int]:
    """Return op, type attribute and position; ``tf.image.resize`` becomes another op with each method."""
    op, attribute, position = _OPS[call.callee]
    if call.callee == "tf.image.resize":
        method = call.argument("method", 2)
        word = method.name if isinstance(method, External) else method.value if isinstance(method, Const) else ""
        if method is not None and not str(word).lower().endswith("bilinear"):
            op = "ResizeNearestNeighbor" if "nearest" in str(word).lower() else "not known"
    if call.callee == "tf.where" and (len(call.args) > 1 or call.kwargs.keys() & {"x", "y"}):
        op = "not known"  # with three arguments it is a select
    return op, attribute, position


def _tensor_of(call: Call, position: int) -> Value | None:
    if position < len(call.args):
        return call.args[position]
    return next((call.kwargs[name] for name in _TENSOR_NAMES if name in call.kwargs), None)


def _instead(op: str, dtype: str, table: KernelTable) -> str:
    """Return the nearest dtype that the op has a GPU kernel for."""
    if op == "Where":
        return "bool"
    wider = ("float32",) if dtype.startswith(("float", "bfloat")) else ("int32", "int64", "float32")
    attribute = next(name for known, name, _ in _OPS.values() if known in (op, "ResizeBilinear"))
    fitting = (kind for kind in wider if table.place(op, {attribute: kind}) == ("gpu", ""))
    return next(fitting, "float32")
