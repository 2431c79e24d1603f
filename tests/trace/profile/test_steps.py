"""The breakdown on profiles whose every microsecond is known. Times in the files are µs, in the results ms."""

from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, gpu, host, write
from tflint_gpu.trace.evidence import BUCKETS
from tflint_gpu.trace.profile import read_profile


def buckets(step):
    """Return the buckets that are not zero, in µs."""
    return {name: round(ms * 1000) for name, ms in step.buckets.items() if round(ms * 1000)}


def read(tmp_path: Path, *planes):
    found = read_profile(write(tmp_path / "host.xplane.pb", *planes))
    for step in found.steps:
        assert sum(step.buckets.values()) == pytest.approx(step.step_ms, abs=1e-6)
        assert tuple(step.buckets) == BUCKETS
    return found


def test_higher_buckets_win_where_they_overlap(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 1000, step_num=1, _r=1),
                    at("EagerExecute", 0, 1000, eager_op="__inference_step", is_func=1),
                ],
                "tf_data_iterator_get_next": [at("IteratorGetNextOp::DoCompute", 100, 300)],
                "tf_Compute": [
                    at("ExecutorState::Process", 300, 300, id=1),
                    at("cuLaunchKernel", 450, 10, correlation_id=5),
                ],
            }
        ),
        gpu(
            {
                "Stream #13(Compute)": [at("gemm", 500, 200, correlation_id=5), at("ncclAllReduce", 680, 120)],
                "Stream #14(MemcpyH2D)": [at("MemcpyH2D", 50, 100, memcpy_details="kind:x size:4000 dest:0")],
                "Stream #15(MemcpyD2H)": [at("MemcpyD2H", 850, 50, memcpy_details="num_bytes:8")],
            }
        ),
    )
    (step,) = found.steps
    assert buckets(step) == {
        "device_compute": 200,
        "collectives": 100,
        "device_to_host": 50,
        "input_wait": 300,
        "launch": 100,
        "host_to_device": 50,
        "unknown": 200,
    }
    assert step.gpu_busy_ms == pytest.approx(0.45)
    assert step.kernel_ms == pytest.approx(0.3)
    assert found.copies.host_to_device_bytes == 4000
    assert found.copies.device_to_host_bytes == 8
    assert found.seen_as == "marker"


def test_lines_that_repeat_the_streams_are_left_out(tmp_path: Path):
    kernel = at("gemm", 0, 500)
    found = read(
        tmp_path,
        host({"python": [at("train", 0, 1000, step_num=1)]}),
        gpu({"Stream #1": [kernel], "TensorFlow Ops": [at("op", 0, 1000)], "Steps": [], "XLA Ops": [kernel]}),
    )
    assert found.steps[0].gpu_busy_ms == pytest.approx(0.5)
    assert found.kernels.per_step == 1


def test_a_step_lasts_until_the_next_begins(tmp_path: Path):
    marks = [at("train", start, 600, step_num=n) for n, start in enumerate([0, 1000, 2000, 30000])]
    found = read(tmp_path, host({"python": marks}))
    # The third is followed by a pause that no step explains, the fourth by nothing.
    assert [round(step.step_ms * 1000) for step in found.steps] == [1000, 1000, 600, 600]


def test_the_last_step_lasts_until_its_kernels_end(tmp_path: Path):
    found = read(
        tmp_path,
        host({"python": [at("train", 0, 100, step_num=1), at("cuLaunchKernel", 50, 5, correlation_id=9)]}),
        gpu({"Stream #1": [at("gemm", 150, 200, correlation_id=9)]}),
    )
    assert round(found.steps[0].step_ms * 1000) == 350


def test_python_outside_the_runtime_is_host_work(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 1000, step_num=1),
                    at("TFE_Py_ExecuteCancelable", 400, 500),
                    at("EagerExecute", 410, 480, eager_op="__inference_f", is_func=1),
                ],
                "tf_Compute": [at("m/dense/MatMul:MatMul", 500, 300)],
                "tf_data_private_threadpool": [at("m/Cast:Cast", 0, 1000)],
            }
        ),
    )
    assert buckets(found.steps[0]) == {"device_compute": 300, "host": 500, "unknown": 200}
    assert found.device.kind == "cpu"
    assert found.steps[0].gpu_busy_ms is None
    assert {op.name: op.in_input for op in found.host_ops} == {"m/dense/MatMul": False, "m/Cast": True}


def test_next_from_an_eager_loop_is_waiting_for_input_and_no_eager_op(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 1000, step_num=1),
                    at("EagerExecute", 100, 500, eager_op="IteratorGetNext", is_func=0),
                    at("EagerLocalExecute: IteratorGetNext", 110, 480),
                    at("EagerExecute", 700, 100, eager_op="MatMul", is_func=0),
                ]
            }
        ),
    )
    assert buckets(found.steps[0])["input_wait"] == 500
    assert found.eager.ops_per_step == 1
    assert found.eager.share == pytest.approx(0.1)


def test_python_between_two_eager_ops_runs_them_too(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 40000, step_num=1),
                    at("EagerExecute", 1000, 100, eager_op="MatMul", is_func=0),
                    at("EagerExecute", 1500, 100, eager_op="Relu", is_func=0),
                    at("EagerExecute", 1700, 400, eager_op="__inference_f", is_func=1),
                    at("EagerExecute", 2200, 100, eager_op="Sum", is_func=0),
                    # Thirty milliseconds of something else.
                    at("EagerExecute", 32300, 100, eager_op="Mul", is_func=0),
                ]
            }
        ),
    )
    assert found.eager.ops_per_step == 4
    # From the first op to the third but for the function, and the last.
    assert found.eager.share == pytest.approx((1300 - 400 + 100) / 40000)


def test_a_step_ends_where_something_that_is_no_step_begins(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 100, step_num=1),
                    at("train", 150, 600, step_num=2, no_step=1),
                    at("train", 800, 100, step_num=2),
                    at("train", 1000, 100, step_num=3),
                ]
            }
        ),
    )
    assert [round(step.step_ms * 1000) for step in found.steps] == [150, 200, 100]


def test_tracing_is_compilation(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "python": [
                    at("train", 0, 1000, step_num=1),
                    at("f", 100, 800, tf_function_call="traced-nonXla", tracing_count=3),
                    at("EagerExecute", 600, 300, eager_op="__inference_f", is_func=1),
                    at("EagerKernelExecute", 700, 200),
                ]
            }
        ),
    )
    assert buckets(found.steps[0])["compile"] == 600
    (function,) = found.functions
    assert (function.name, function.modes, function.tracing_count) == ("f", {"traced-nonXla": 1}, 3)


def test_old_files_group_events_and_the_device_gives_the_step(tmp_path: Path):
    found = read(
        tmp_path,
        host(
            {
                "tf_gpu_private_0": [
                    at("ExecutorState::Process", 0, 900, id=1, group_id=0),
                    at("IteratorGetNextOp::DoCompute", 450, 100, group_id=0),
                    at("IteratorGetNextOp::DoCompute", 650, 50, group_id=1),
                ]
            }
        ),
        gpu(
            {
                "Stream #1(Compute)": [at("gemm", 400, 20, group_id=0), at("gemm", 600, 200, group_id=0)],
                "Steps": [at("0", 400, 400, group_id=0)],
            }
        ),
    )
    assert found.seen_as == "device"
    assert buckets(found.steps[0]) == {"device_compute": 220, "input_wait": 100, "launch": 80}


def test_a_copy_of_no_length_takes_no_time(tmp_path: Path):
    """TensorFlow's own analysis lets it last until the next event of the device ends."""
    waits = {"tf_Compute": [at("IteratorGetNext/_1:_Send", 0, 300, group_id=0)]}
    work = [at("MemcpyH2D", 0, 0, group_id=0), at("gemm", 200, 50, group_id=0)]
    found = read(tmp_path, host(waits), gpu({"Stream #1": work, "Steps": [at("0", 0, 1000, group_id=0)]}))
    assert buckets(found.steps[0]) == {"device_compute": 50, "input_wait": 250, "unknown": 700}


def test_the_step_of_the_host_counts_where_it_includes_the_device(tmp_path: Path):
    found = read(
        tmp_path,
        host({"python": [at("train", 0, 1000, step_num=4, group_id=0)]}),
        gpu({"Stream #1": [at("gemm", 400, 200, group_id=0)], "Steps": [at("0", 400, 200, group_id=0)]}),
    )
    assert round(found.steps[0].step_ms * 1000) == 1000


def test_without_marks_the_window_counts_as_one_step_and_says_so(tmp_path: Path):
    found = read(tmp_path, gpu({"Stream #2": [at("fusion", 0, 10), at("fusion", 90, 10)]}))
    assert found.seen_as == "time"
    assert found.devices[0].busy_share == pytest.approx(0.2)
    assert any("No steps are marked" in note for note in found.notes)


def test_gpus_without_events_are_not_traced_and_never_idle(tmp_path: Path):
    found = read(tmp_path, host({"python": [at("train", 0, 100, step_num=1)]}), gpu({}))
    assert found.device.kind == "gpu"
    assert not found.device.traced
    assert found.steps[0].gpu_busy_ms is None
    assert any("not traced" in note for note in found.notes)


def test_events_in_any_order_read_alike(tmp_path: Path):
    events = [
        at("train", 0, 100, step_num=1, _r=1),
        at("EagerExecute: __inference_step", 0, 90),
        at("ExecutorState::Process", 0, 60, id=1),
        at("layer/MatMul:MatMul", 5, 20),
        at("train", 100, 100, step_num=2, _r=1),
        at("ExecutorState::Process", 110, 50, id=2),
        at("layer/MatMul:MatMul", 115, 20),
    ]
    orders = [events, events[::-1], events[3:] + events[:3]]
    first, *others = (read(tmp_path, host({"python": order})) for order in orders)
    assert len(first.steps) == 2
    assert first.steps[0].buckets["device_compute"] == pytest.approx(0.02)
    assert all(other == first for other in others)
