"""``tf.function``: what it wraps, how it was made, every call of it, and what runs inside."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, plain


@pytest.mark.parametrize(
    "text",
    [
        "@tf.function\ndef f(a): return tf.add(a, 1)\nf(x)",
        "@tf.function()\ndef f(a): return tf.add(a, 1)\nf(x)",
        "@tf.function(jit_compile=False)\ndef f(a): return tf.add(a, 1)\nf(x)",
        "def g(a): return tf.add(a, 1)\nf = tf.function(g)\nf(x)",
        "f = tf.function(lambda a: tf.add(a, 1))\nf(x)",
        "class C:\n    @tf.function\n    def f(self, a): return tf.add(a, 1)\nC().f(x)",
        "class C:\n    def __init__(s): s.f = tf.function(s.g)\n    def g(s, a): return tf.add(a, 1)\nC().f(x)",
        "from tensorflow import function as fun\n@fun\ndef f(a): return tf.add(a, 1)\nf(x)",
        "import functools\n@functools.partial(tf.function, autograph=False)\ndef f(a): return tf.add(a, 1)\nf(x)",
        "@tf.function\ndef f(a): return inner(a)\ndef inner(a): return tf.add(a, 1)\nf(x)",
        "fs = {'f': tf.function(lambda a: tf.add(a, 1))}\nfs['f'](x)",
    ],
)
def test_body_runs_in_the_graph(read: Read, text: str) -> None:
    program = read(text + "\n")

    assert {call.context.region for call in program.calls_to("tf.add")} == {"graph"}
    assert all(call.context.in_graph for call in program.calls_to("tf.add"))
    assert sum(len(function.calls) for function in program.functions) == 1


def test_options_of_a_graph_function(read: Read) -> None:
    program = read(
        "@tf.function(jit_compile=True, reduce_retracing=True)\ndef f(a): pass\n@tf.function\ndef g(): pass\n"
    )
    first, second = program.functions

    assert first.jit and not second.jit
    assert {name: plain(value) for name, value in first.options.items()} == {
        "jit_compile": True,
        "reduce_retracing": True,
    }


def test_every_call_is_known_with_its_arguments(read: Read) -> None:
    program = read("@tf.function\ndef f(a, n): pass\nfor i in range(9):\n    f(x, i)\nf(x, 2)\n")
    (function,) = program.functions

    assert len(function.calls) == 2
    assert [len(call.context.loops) for call in function.calls] == [1, 0]
    assert plain(function.calls[1].args[1]) == 2


def test_function_made_in_a_loop_says_so(read: Read) -> None:
    program = read("for i in range(9):\n    f = tf.function(lambda a: a)\n    f(x)\n")

    assert [len(function.made.context.loops) for function in program.functions] == [1]


def test_strategy_run_follows_its_function(read: Read) -> None:
    program = read(
        """
strategy = tf.distribute.MirroredStrategy()

def replica(a, b=1):
    return tf.add(a, b)

@tf.function
def step(a):
    return strategy.reduce("SUM", strategy.run(replica, args=(a,), kwargs={"b": 2}), axis=None)

step(x)
"""
    )
    (call,) = program.calls_to("tf.add")

    assert call.context.in_graph
    assert plain(call.args[1]) == 2


def test_function_given_to_an_op_is_followed(read: Read) -> None:
    program = read("def f(a): return tf.add(a, 1)\n@tf.function\ndef g(a): return tf.map_fn(f, a)\ng(x)\n")

    assert [call.context.in_graph for call in program.calls_to("tf.add")] == [True]


def test_graph_function_that_nobody_calls_is_read_as_one(read: Read) -> None:
    program = read("@tf.function\ndef f(a):\n    return tf.add(a, 1)\n")

    assert [call.context.region for call in program.calls_to("tf.add")] == ["graph"]
