"""Dtypes of what many values went into: told at once, or not at all."""

from __future__ import annotations

from tflint_gpu.checks.dtypes import dtype_of
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Context
from tflint_gpu.program.values import Const, External, Tensor, Value


def call_of(callee: str, *args: Value) -> Call:
    return Call(callee, None, "", None, Context(), args)  # type: ignore[arg-type]


def test_both_sides_of_an_operator_have_one_dtype() -> None:
    whole = Tensor(call_of("tf.cast", Tensor(), External("tf.int32")))

    assert dtype_of(Tensor(parents=(Const(2), whole), operator="*")) == "int32"
    assert dtype_of(Tensor(parents=(whole, Const(2)), operator="/")) is None


def test_sums_that_double_with_every_line_are_worked_out_once() -> None:
    value: Value = Tensor(parents=(Const(1),), operator="-")
    for _ in range(60):  # 2 ** 60 ways back
        value = Tensor(parents=(value, value), operator="+")

    assert dtype_of(value) is None


def test_a_chain_longer_than_python_recurses_is_not_known() -> None:
    value: Value = Tensor(call_of("tf.cast", Tensor(), External("tf.int32")))
    for _ in range(5000):
        value = Tensor(parents=(value, Const(1)), operator="+")

    assert dtype_of(value) is None
