"""The shipped tables of functions and ops without a GPU kernel, and how arguments decide."""

from __future__ import annotations

from typing import Any

import pytest

from tflint_gpu.findings import Location
from tflint_gpu.program import kernels
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Context
from tflint_gpu.program.kernels import cpu_only, kernel_table, release_of, table_version, xla_refuses
from tflint_gpu.program.target import NEWEST
from tflint_gpu.program.values import Const, External, Parameter, Tensor, Value

HERE = Location("train.py", 1, 1, 1, 10)
IMAGES = Parameter("images")


def call(callee: str, *args: Value, **kwargs: Any) -> Call:
    named = {name: value if isinstance(value, Value) else Const(value) for name, value in kwargs.items()}
    return Call(callee, HERE, "", None, Context(), args, named)  # type: ignore[arg-type]


def resize(*args: Value, **kwargs: Any) -> Call:
    return call("tf.image.resize", IMAGES, Const((8, 8)), *args, **kwargs)


@pytest.mark.parametrize(
    ("made", "op"),
    [
        (resize(method="bicubic"), "ResizeBicubic"),
        (resize(Const("bicubic")), "ResizeBicubic"),
        (resize(External("tf.image.ResizeMethod.BICUBIC")), "ResizeBicubic"),
        (resize(method="area"), "ResizeArea"),
        (resize(method="lanczos3"), "ScaleAndTranslate"),
        (resize(antialias=True), "ScaleAndTranslate"),
        (resize(method="bilinear", antialias=True), "ScaleAndTranslate"),
        (resize(method="bicubic", antialias=True), "ScaleAndTranslate"),
    ],
)
def test_the_method_decides_which_op_a_resize_becomes(made: Call, op: str) -> None:
    found = cpu_only("tf.image.resize", made)
    assert found is not None
    assert found.ops[0] == op
    assert found.xla_ok is False
    assert "bilinear" in found.replacement


@pytest.mark.parametrize(
    "made",
    [
        resize(),
        resize(method="bilinear"),
        resize(External("tf.image.ResizeMethod.NEAREST_NEIGHBOR")),
        resize(method="nearest", antialias=True),
        resize(method=Parameter("method")),
        resize(antialias=Parameter("antialias")),
        resize(method=Parameter("method"), antialias=True),
    ],
)
def test_what_has_a_kernel_or_is_not_known_is_never_accused(made: Call) -> None:
    assert cpu_only("tf.image.resize", made) is None


def test_a_condition_needs_the_call() -> None:
    assert cpu_only("tf.image.resize") is None


def test_the_kind_of_tensor_decides_for_ctc_loss() -> None:
    sparse = Tensor(call("tf.sparse.from_dense", IMAGES))
    dense = Tensor(call("tf.sparse.to_dense", IMAGES))
    found = cpu_only("tf.nn.ctc_loss", call("tf.nn.ctc_loss", sparse, IMAGES))
    assert found is not None
    assert found.ops == ("CTCLoss",)
    assert cpu_only("tf.nn.ctc_loss", call("tf.nn.ctc_loss", dense, IMAGES)) is None
    assert cpu_only("tf.nn.ctc_loss", call("tf.nn.ctc_loss", IMAGES, IMAGES)) is None


@pytest.mark.parametrize(
    ("api", "op", "xla"),
    [
        ("tf.random.shuffle", "RandomShuffle", True),
        ("tf.random.experimental.stateless_shuffle", "StatelessShuffle", False),
        ("tf.random.gamma", "RandomGamma", False),
        ("tf.unravel_index", "UnravelIndex", False),
        ("tf.edit_distance", "EditDistance", False),
        ("tf.sets.size", "DenseToDenseSetOperation", False),
        ("tf.linalg.eig", "Eig", False),
        ("tf.linalg.sqrtm", "MatrixSquareRoot", False),
        ("tf.nn.ctc_beam_search_decoder", "CTCBeamSearchDecoder", False),
        ("tf.compat.v1.nn.ctc_loss", "CTCLoss", False),
        ("keras.backend.ctc_batch_cost", "CTCLoss", False),
        ("tf.nn.fractional_max_pool", "FractionalMaxPool", False),
        ("tf.nn.sampled_softmax_loss", "ComputeAccidentalHits", False),
        ("tf.image.draw_bounding_boxes", "DrawBoundingBoxesV2", False),
        ("tf.image.random_jpeg_quality", "DecodeJpeg", False),
        ("tf.sparse.reduce_sum", "SparseReduceSum", False),
        ("tf.sparse.softmax", "SparseSoftmax", False),
        ("tf.strings.length", "StringLength", False),
        ("tf.strings.as_string", "AsString", False),
        ("tf.as_string", "AsString", False),
        ("tf.lookup.StaticHashTable.lookup", "LookupTableFindV2", False),
        ("tf.numpy_function", "PyFunc", False),
        ("tf.raw_ops.UniqueV2", "UniqueV2", True),
    ],
)
def test_functions_without_a_gpu_kernel(api: str, op: str, xla: bool) -> None:
    found = cpu_only(api)
    assert found is not None
    assert found.ops[0] == op
    assert found.xla_ok is xla


@pytest.mark.parametrize(
    "api",
    [
        "tf.image.crop_and_resize",
        "tf.image.random_flip_left_right",
        "tf.sort",
        "tf.argsort",
        "tf.math.top_k",
        "tf.searchsorted",
        "tf.math.bincount",
        "tf.cumsum",
        "tf.linalg.svd",
        "tf.linalg.eigh",
        "tf.signal.stft",
        "tf.where",
        "tf.unique",
        "tf.gather",
        "tf.sparse.sparse_dense_matmul",
        "tf.random.stateless_gamma",
        "tf.image.non_max_suppression",
        "keras.losses.CTC",
        "tf.raw_ops.MatMul",
        "tf.no_such_function",
    ],
)
def test_functions_with_a_gpu_kernel(api: str) -> None:
    assert cpu_only(api) is None


def test_xla_refuses_some_that_a_gpu_takes() -> None:
    assert xla_refuses("tf.image.crop_and_resize") == ("CropAndResize",)
    assert xla_refuses("tf.random.shuffle") == ()
    assert xla_refuses("tf.raw_ops.MatMul") == ()
    assert xla_refuses("tf.image.resize", resize(method="bicubic")) == ("ResizeBicubic",)


def test_the_op_table_agrees_with_the_function_table() -> None:
    table = kernel_table()
    assert {"AsString", "ResizeBicubic", "Eig", "PyFunc"} <= table.cpu_only
    assert table.cpu_only.isdisjoint(table.gpu)
    assert {"MatMul", "Conv2D", "RandomShuffle"} <= table.xla
    assert table.version.split(".")[0] == "2"


def test_the_newest_table_is_the_newest_tensorflow_known() -> None:
    assert release_of(kernel_table().version) == NEWEST[0]


def test_a_table_holds_until_the_next_one() -> None:
    versions = [release_of(version) for version in kernels._versions()]
    assert versions == sorted(versions, reverse=True)
    for version in versions:
        assert release_of(table_version(version)) == version
    newest, oldest = versions[0], versions[-1]
    assert newest and oldest
    assert release_of(table_version((newest[0], newest[1] + 1))) == newest
    assert release_of(table_version((1, 15))) == oldest
    assert release_of(table_version(None)) == newest


def test_a_version_between_two_tables_takes_the_older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_versions", lambda: ("2.21.0", "2.15.1", "2.10.1"))
    assert table_version((2, 16)) == "2.15.1"
    assert table_version((2, 11)) == "2.10.1"


@pytest.mark.parametrize("version", kernels._versions())
def test_every_table_is_whole(version: str) -> None:
    table = kernel_table(release_of(version))
    assert table.version == version
    assert table.cpu_only.isdisjoint(table.gpu)
    assert {"AsString", "ResizeBicubic", "Eig", "PyFunc"} <= table.cpu_only
    assert {"MatMul", "Conv2D", "RandomShuffle"} <= table.xla
    assert table.place("MatMul", {"T": "float32"}) == ("gpu", "")


def test_an_op_that_got_its_gpu_kernel_later_has_none_before() -> None:
    assert kernel_table((2, 4)).place("SegmentMean", {"T": "float32", "Tindices": "int32"}) == ("cpu", "no-kernel")
    assert kernel_table().place("SegmentMean", {"T": "float32", "Tindices": "int32"}) == ("gpu", "")


def test_raw_ops_are_judged_by_the_table_of_the_target() -> None:
    assert cpu_only("tf.raw_ops.SegmentMean") is None
    old = cpu_only("tf.raw_ops.SegmentMean", tensorflow=(2, 4))
    assert old is not None and old.ops == ("SegmentMean",)


@pytest.mark.parametrize(
    ("text", "release"),
    [("2.15.1", (2, 15)), ("2.9", (2, 9)), ("2.22.0-dev20260101", (2, 22)), ("", None), (None, None), ("x", None)],
)
def test_the_release_of_a_version(text: str | None, release: tuple[int, int] | None) -> None:
    assert release_of(text) == release
