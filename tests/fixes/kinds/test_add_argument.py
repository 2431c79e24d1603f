"""add-argument, on code as people lay it out: what is changed, and that nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fixes.conftest import HEAD, PARALLEL, case

Fixed = Callable[..., str]


@pytest.mark.parametrize(
    ("text", "call", "expected"),
    [
        case(
            "one line",
            "ds = ds.map(f)\n",
            "ds.map(f)",
            "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
        case(
            "a lambda keeps its body",
            "ds = ds.map(lambda x, y: (x, y))\n",
            "ds.map(lambda x, y: (x, y))",
            "ds = ds.map(lambda x, y: (x, y), num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
        case(
            "trailing comma on one line",
            "ds = ds.map(f, )\n",
            "ds.map(f, )",
            "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE, )\n",
        ),
        case(
            "an argument a line, trailing comma, comments",
            """\
            ds = ds.map(
                # decodes
                f,  # slow
                # end
            )
            """,
            "ds.map(\n    # decodes\n    f,  # slow\n    # end\n)",
            """\
            ds = ds.map(
                # decodes
                f,  # slow
                num_parallel_calls=tf.data.AUTOTUNE,
                # end
            )
            """,
        ),
        case(
            "an argument a line, no trailing comma",
            "ds = ds.map(\n    f  # slow\n)\n",
            "ds.map(\n    f  # slow\n)",
            "ds = ds.map(\n    f,  # slow\n    num_parallel_calls=tf.data.AUTOTUNE\n)\n",
        ),
        case(
            "comma on a line of its own",
            "ds = ds.map(\n    f\n    ,\n)\n",
            "ds.map(\n    f\n    ,\n)",
            "ds = ds.map(\n    f\n    , num_parallel_calls=tf.data.AUTOTUNE,\n)\n",
        ),
        case(
            "thirty lines of lambda",
            "ds = ds.map(\n    lambda x: (\n" + "        x,\n" * 30 + "    ),\n)\n",
            "ds.map(\n    lambda x: (\n" + "        x,\n" * 30 + "    ),\n)",
            "ds = ds.map(\n    lambda x: (\n"
            + "        x,\n" * 30
            + "    ),\n    num_parallel_calls=tf.data.AUTOTUNE,\n)\n",
        ),
        case(
            "two arguments on the last line",
            "ds = ds.map(\n    f, deterministic=True)\n",
            "ds.map(\n    f, deterministic=True)",
            "ds = ds.map(\n    f, deterministic=True, num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
        case(
            "hanging arguments, trailing comma",
            "ds = ds.map(f,\n            deterministic=True,)\n",
            "ds.map(f,\n            deterministic=True,)",
            "ds = ds.map(f,\n            deterministic=True,\n            num_parallel_calls=tf.data.AUTOTUNE,)\n",
        ),
        case(
            "hanging arguments",
            "ds = ds.map(f,\n            deterministic=True)\n",
            "ds.map(f,\n            deterministic=True)",
            "ds = ds.map(f,\n            deterministic=True,\n            num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
        case(
            "no argument",
            "ds = ds.interleave(  )\n",
            "ds.interleave(  )",
            "ds = ds.interleave(num_parallel_calls=tf.data.AUTOTUNE  )\n",
        ),
        case(
            "None is replaced where it stands",
            "ds = ds.map(f, num_parallel_calls=None, deterministic=True)  # x\n",
            "ds.map(f, num_parallel_calls=None, deterministic=True)",
            "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)  # x\n",
        ),
        case(
            "1 is replaced by position too",
            "ds = ds.map(f, 1)\n",
            "ds.map(f, 1)",
            "ds = ds.map(f, tf.data.AUTOTUNE)\n",
        ),
        case(
            "a map inside a map's lambda",
            "ds = ds.map(lambda x: x.map(f))\n",
            "x.map(f)",
            "ds = ds.map(lambda x: x.map(f, num_parallel_calls=tf.data.AUTOTUNE))\n",
        ),
    ],
)
def test_add_argument(text: str, call: str, expected: str, fixed: Fixed) -> None:
    assert fixed(text, call, PARALLEL) == expected
    crlf = text.replace("\n", "\r\n")
    assert fixed(crlf, call, PARALLEL) == expected.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("ds.map(f, **options)", "the call unpacks arguments, which may already hold num_parallel_calls"),
        ("ds.map(*arguments)", "the call unpacks arguments, which may already hold num_parallel_calls"),
        ("ds.map(f, num_parallel_calls=n)", "the call already sets num_parallel_calls"),
        ("ds.map(f, 4)", "the call already sets num_parallel_calls"),
        ("ds.map(f for f in g)", "the call's only argument is a bare generator expression"),
    ],
)
def test_declined(call: str, reason: str, fixed: Fixed) -> None:
    assert fixed(f"{HEAD}ds = {call}\n", call, PARALLEL) == reason
