"""Calls by name: in the order they were met, whatever they are asked by."""

from __future__ import annotations

from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Context
from tflint_gpu.program.target import Target
from tflint_gpu.program.views import Program


def test_calls_that_fit_come_in_the_order_of_the_program() -> None:
    program = Program(Target((2, 21), (3, 15)))
    names = ["tf.abs", "numpy.load", "tf.cast", "tf.abs", "", "tf.cast"]
    program.calls = [Call(name, None, "", None, Context()) for name in names]  # type: ignore[arg-type]

    assert [call.callee for call in program.calls_where(lambda name: name.startswith("tf."))] == [
        "tf.abs",
        "tf.cast",
        "tf.abs",
        "tf.cast",
    ]
    assert [call.callee for call in program.calls_to("tf.cast", "tf.abs")] == ["tf.cast"] * 2 + ["tf.abs"] * 2
    assert program.calls_where(lambda name: name == "tf.nothing") == []
