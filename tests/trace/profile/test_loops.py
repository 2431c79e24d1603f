"""Loops of graphs in a profile: found by the ops of their bodies, or by the ops before and behind them."""

from pathlib import Path

import pytest

from tests.trace.profile.spaces import Event, at, host, write
from tflint_gpu.trace.profile import read_profile

WHILE = "StatefulPartitionedCall/rnn/while"


def read(tmp_path: Path, *ops: Event, thread: str = "tf_Compute"):
    """Return the loops of two steps of 1 ms, in the first of which `ops` run."""
    steps = [at("train", start, 1000, step_num=number, _r=1) for number, start in enumerate((0, 1000))]
    run = at("ExecutorState::Process", 0, 1000, id=1)
    return read_profile(write(tmp_path / "host.xplane.pb", host({"python": steps, thread: [run, *ops]}))).loops


def test_a_loop_lasts_from_its_first_op_to_its_last(tmp_path: Path):
    rounds = [
        op
        for number in range(3)
        for op in (
            at(f"{WHILE}/body/_16/rnn/while/MatMul:MatMul", 100 + 100 * number, 20),
            at(f"{WHILE}/cond/_17/rnn/while/Less:Less", 150 + 100 * number, 10),
        )
    ]
    (loop,) = read(tmp_path, at("rnn/MatMul:MatMul", 10, 50), *rounds)
    assert loop.scope == WHILE
    assert loop.ms == pytest.approx((360 - 100) / 1000 / 2)
    assert loop.rounds == 3 / 2


def test_of_nested_loops_the_outer_one_counts(tmp_path: Path):
    inner = f"{WHILE}/body/_16/rnn/while/map/while/body/_20/rnn/while/map/while/Mul:Mul"
    (loop,) = read(tmp_path, at(inner, 100, 10), at(inner, 300, 10))
    assert (loop.scope, loop.ms) == (WHILE, pytest.approx(0.105))


def test_a_loop_that_runs_whole_has_no_rounds(tmp_path: Path):
    (loop,) = read(tmp_path, at("rnn/while:While", 100, 400))
    assert (loop.scope, loop.ms, loop.rounds) == ("rnn/while", pytest.approx(0.2), None)


def test_lists_before_and_behind_a_loop_show_where_it_ran(tmp_path: Path):
    (loop,) = read(
        tmp_path,
        at("loss/map/TensorArrayUnstack/TensorListFromTensor:TensorListFromTensor", 100, 10),
        at("loss/map/TensorArrayV2Stack/TensorListStack:TensorListStack", 500, 10),
    )
    assert (loop.scope, loop.ms, loop.rounds) == ("loss/map/", pytest.approx(0.205), None)


def test_loops_of_the_input_are_no_loops_of_the_step(tmp_path: Path):
    op = at(f"{WHILE}/body/_16/rnn/while/MatMul:MatMul", 100, 20)
    assert read(tmp_path, op, thread="tf_data_private_threadpool") == ()
