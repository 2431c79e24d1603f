"""Records of the probe turned into placements: words, predictions from the shipped table, times by node name."""

from __future__ import annotations

from typing import Any

import pytest

from tflint_gpu.program.kernels import kernel_table
from tflint_gpu.trace.evidence import Device
from tflint_gpu.trace.placement import graph_loops, placements
from tflint_gpu.trace.profile.loops import LoopTime
from tflint_gpu.trace.profile.ops import OpTime
from tflint_gpu.trace.profile.summary import ProfileSummary


def record(op: str = "ResizeBicubic", **changes: Any) -> dict[str, Any]:
    return {
        "op": op,
        "count": 1,
        "names": ["model/up/resize/" + op],
        "dtypes": ["float32"],
        "types": {"T": "float32"},
        "spot": {"path": "train.py", "line": 7, "cell": None, "function": "call"},
        "function": "call",
        "device": "cpu",
        "basis": "kernels",
        "why": "no-kernel",
        "bytes": 1000,
        "in_step": True,
        "jit": False,
        "compiles": None,
        "body": None,
        **changes,
    }


def profile(*ops: OpTime, loops: tuple[LoopTime, ...] = ()) -> ProfileSummary:
    return ProfileSummary(files=(), device=Device("CPU", "cpu", traced=True), host_ops=ops, loops=loops)


def loop(*names: str, **changes: Any) -> dict[str, Any]:
    return record("While", names=list(names), device=None, basis="none", why="", bytes=None, body=24, **changes)


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("no-kernel", "no GPU kernel for ResizeBicubic"),
        ("dtype", "no GPU kernel of ResizeBicubic for float32"),
        ("host-memory", "the GPU kernel of ResizeBicubic for float32 works in host memory"),
        ("asked", "tf.device puts ResizeBicubic on the CPU"),
        ("python", "ResizeBicubic runs Python code"),
    ],
)
def test_each_reason_is_a_sentence(why: str, reason: str) -> None:
    (found,) = placements([record(why=why)])
    assert (found.device, found.predicted, found.reason) == ("cpu", True, reason)
    assert found.spot is not None
    assert (found.spot.path, found.spot.line, found.bytes) == ("train.py", 7, 1000)


def test_a_real_placement_is_no_prediction() -> None:
    (found,) = placements([record(basis="ran")], keras_auto_jit=True)
    assert (found.device, found.predicted) == ("cpu", False)
    (unexplained,) = placements([record("Mul", basis="ran", why="")])
    assert unexplained.reason == "Mul ran on the CPU"


def test_a_tensorflow_without_cuda_is_judged_by_the_shipped_table() -> None:
    unknown = {"device": None, "basis": "none", "why": ""}
    shuffled, product, strange = placements(
        [record(**unknown), record("MatMul", **unknown), record("NoSuchOp", **unknown)]
    )
    version = kernel_table().version
    assert shuffled.reason == f"no GPU kernel for ResizeBicubic (by the kernels of TensorFlow {version})"
    assert {product.device, strange.device} == {"gpu", "unknown"}
    assert all(found.predicted for found in (shuffled, product, strange))
    assert product.reason == strange.reason == ""


def test_the_table_knows_types_and_host_memory() -> None:
    table = kernel_table()
    assert table.place("MatMul", {"T": "float32"}) == ("gpu", "")
    assert table.place("MatMul", {"T": "int32"})[0] == "cpu"
    assert table.place("AddV2", {"T": "int32"}) == ("cpu", "host-memory")
    assert table.place("AsString", {"T": "float32"}) == ("cpu", "no-kernel")
    assert table.place("Cast", {"SrcT": "float32", "DstT": "float16"}) == ("gpu", "")


def test_an_op_that_xla_cannot_compile_ends_a_compiled_run() -> None:
    (asked,) = placements([record(jit=True, compiles=False)])
    (automatic,) = placements([record()], keras_auto_jit=True)
    (outside,) = placements([record(in_step=False)], keras_auto_jit=True)
    assert asked.reason == "ResizeBicubic cannot be compiled by XLA: this will fail"
    assert automatic.reason.endswith("XLA, which Keras 3 uses on a GPU: this will fail")
    assert outside.reason == "no GPU kernel for ResizeBicubic"


def test_xla_brings_its_own_kernel_for_some_ops() -> None:
    (alone,) = placements([record("RandomShuffle")])
    (compiled,) = placements([record("RandomShuffle", jit=True)])
    assert (alone.device, compiled.device, compiled.reason) == ("cpu", "gpu", "")


def test_times_come_from_the_node_however_deep_it_was_inlined() -> None:
    name = "model/up/resize/ResizeBicubic"
    ops = (
        OpTime("ResizeBicubic", "step/while/body/" + name, count=1, ms=1.5),
        OpTime("ResizeBicubic", name, count=1, ms=0.5),
        OpTime("ResizeBicubic", name, count=1, ms=9.0, in_input=True),
        OpTime("ResizeBicubic", "other/resize/ResizeBicubic", count=1, ms=9.0),
        OpTime("Mul", name, count=1, ms=9.0),
    )
    (found,) = placements([record()], profile(*ops))
    assert found.ms == 2.0


def test_an_op_that_never_ran_has_no_time() -> None:
    (found,) = placements([record()], profile())
    assert found.ms is None


def test_work_that_leaves_the_gpu_comes_first() -> None:
    on_gpu = record("MatMul", device="gpu", why="")
    nowhere = record("AsString", spot=None)
    assert [p.op for p in placements([on_gpu, nowhere, record()])] == ["ResizeBicubic", "AsString", "MatMul"]


def test_a_loop_and_its_gradient_are_one_and_no_placement() -> None:
    times = (LoopTime("Call/rnn/while", 2.0, 20.0), LoopTime("Call/grad/rnn/while_grad", 3.0, 21.0))
    both = loop("rnn/while", "grad/rnn/while_grad")
    (found,) = graph_loops([both], profile(loops=times))
    assert (found.ms, found.rounds, found.body_ops) == (5.0, 21.0, 24)
    assert found.spot is not None
    assert found.spot.line == 7
    assert placements([both]) == ()


def test_a_loop_that_the_profile_does_not_show_has_no_time() -> None:
    (found,) = graph_loops([loop("rnn/while")], profile(loops=(LoopTime("other/while", 2.0, 20.0),)))
    assert (found.ms, found.rounds) == (None, None)


def test_a_loop_is_known_by_its_scope_only_where_it_is_alone_there() -> None:
    around = profile(loops=(LoopTime("Call/loss/map/", 2.0, None),))
    (found,) = graph_loops([loop("loss/map/while")], around)
    assert (found.ms, found.rounds) == (2.0, None)
    pair = graph_loops([loop("loss/map/while"), loop("loss/map/while_1")], around)
    assert [each.ms for each in pair] == [None, None]
    (top,) = graph_loops([loop("while")], around)
    assert top.ms is None
