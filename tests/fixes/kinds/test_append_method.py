"""append-method, on code as people lay it out: what is changed, and that nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fixes.conftest import HEAD, PREFETCH, case

Fixed = Callable[..., str]


@pytest.mark.parametrize(
    ("text", "call", "expected"),
    [
        case(
            "one line",
            "ds = ds.map(f).batch(32)  # big\n",
            "ds.map(f).batch(32)",
            "ds = ds.map(f).batch(32).prefetch(tf.data.AUTOTUNE)  # big\n",
        ),
        case(
            "in a call's argument",
            "model.fit(ds.batch(32), epochs=3)\n",
            "ds.batch(32)",
            "model.fit(ds.batch(32).prefetch(tf.data.AUTOTUNE), epochs=3)\n",
        ),
        case(
            "no attribute at all",
            "ds = make(\n    x,\n)\n",
            "make(\n    x,\n)",
            "ds = make(\n    x,\n).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "a method on each line, comments between",
            """\
            ds = (
                ds.map(f)  # decode

                # then
                .batch(32)  # 32 fit
                # the end
            )
            """,
            "ds.map(f)  # decode\n\n    # then\n    .batch(32)",
            """\
            ds = (
                ds.map(f)  # decode

                # then
                .batch(32)  # 32 fit
                .prefetch(tf.data.AUTOTUNE)
                # the end
            )
            """,
        ),
        case(
            "the next method has a line of its own",
            """\
            ds = (
                ds.batch(2)  # pairs
                .repeat()
            )
            """,
            "ds.batch(2)",
            """\
            ds = (
                ds.batch(2)  # pairs
                .prefetch(tf.data.AUTOTUNE)
                .repeat()
            )
            """,
        ),
        case(
            "parenthesis on the last line",
            "ds = (ds\n      .map(f)\n      .batch(32))\n",
            "ds\n      .map(f)\n      .batch(32)",
            "ds = (ds\n      .map(f)\n      .batch(32)\n      .prefetch(tf.data.AUTOTUNE))\n",
        ),
        case(
            "backslashes",
            "ds = ds.map(f) \\\n       .batch(32)  # b\nx = 1\n",
            "ds.map(f) \\\n       .batch(32)",
            "ds = ds.map(f) \\\n       .batch(32) \\\n       .prefetch(tf.data.AUTOTUNE)  # b\nx = 1\n",
        ),
        case(
            "last of several arguments, one on a line",
            "fit(\n    (ds\n     .batch(2)),\n    ds\n    .batch(3),\n)\n",
            "ds\n    .batch(3)",
            "fit(\n    (ds\n     .batch(2)),\n    ds\n    .batch(3)\n    .prefetch(tf.data.AUTOTUNE),\n)\n",
        ),
        case(
            "inside a method of a nested class, tabs",
            "class A:\n\tclass B:\n\t\tdef f(self):\n\t\t\treturn self.ds.batch(2)\n",
            "self.ds.batch(2)",
            "class A:\n\tclass B:\n\t\tdef f(self):\n\t\t\treturn self.ds.batch(2).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "behind a decorator with a call",
            "@cached(size=3)\ndef f():\n    return ds.batch(2)\n",
            "ds.batch(2)",
            "@cached(size=3)\ndef f():\n    return ds.batch(2).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "statements that share a line",
            "a = 1; ds = ds.batch(2); b = (\n  3)\n",
            "ds.batch(2)",
            "a = 1; ds = ds.batch(2).prefetch(tf.data.AUTOTUNE); b = (\n  3)\n",
        ),
        case(
            "the inner one of two calls",
            "ds = wrap(wrap(ds.batch(2)))\n",
            "wrap(ds.batch(2))",
            "ds = wrap(wrap(ds.batch(2)).prefetch(tf.data.AUTOTUNE))\n",
        ),
        case(
            "in the middle of a chain",
            "ds = ds.batch(2).repeat()\n",
            "ds.batch(2)",
            "ds = ds.batch(2).prefetch(tf.data.AUTOTUNE).repeat()\n",
        ),
        case(
            "no line end at the end of the file",
            "ds = ds.batch(2)",
            "ds.batch(2)",
            "ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)",
        ),
        case(
            "found by the method's own name",
            "ds = ds.map(f).batch(2)\n",
            "batch(2)",
            "ds = ds.map(f).batch(2).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "in the condition of an elif",
            "if a:\n    pass\nelif ds.batch(2):\n    pass\nelse:\n    pass\n",
            "ds.batch(2)",
            "if a:\n    pass\nelif ds.batch(2).prefetch(tf.data.AUTOTUNE):\n    pass\nelse:\n    pass\n",
        ),
        case(
            "behind a colon, with an else below",
            "if a: ds = ds.batch(\n  2)\nelse: ds = b\n",
            "ds.batch(\n  2)",
            "if a: ds = ds.batch(\n  2).prefetch(tf.data.AUTOTUNE)\nelse: ds = b\n",
        ),
        case(
            "in a handler inside a case",
            "match a:\n    case 1:\n        try:\n            pass\n        except E:\n            ds.batch(2)\n",
            "ds.batch(2)",
            "match a:\n    case 1:\n        try:\n            pass\n        except E:\n"
            "            ds.batch(2).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "in a decorator of a method",
            "class A:\n    @use(ds.batch(2))\n    @other\n    def f(self): pass\n",
            "ds.batch(2)",
            "class A:\n    @use(ds.batch(2).prefetch(tf.data.AUTOTUNE))\n    @other\n    def f(self): pass\n",
        ),
        case(
            "strings with brackets and line ends before it",
            's = """(\n.batch(2)\n"""; ds = ds.batch(2)\n',
            "ds.batch(2)",
            's = """(\n.batch(2)\n"""; ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)\n',
        ),
        case(
            "behind signs of several bytes",
            "größe = '𝔘'; ds = ds.batch(größe)\n",
            "ds.batch(größe)",
            "größe = '𝔘'; ds = ds.batch(größe).prefetch(tf.data.AUTOTUNE)\n",
        ),
        case(
            "behind a form feed",
            "x = 1\n\x0c\nds = ds.batch(2)\n",
            "ds.batch(2)",
            "x = 1\n\x0c\nds = ds.batch(2).prefetch(tf.data.AUTOTUNE)\n",
        ),
    ],
)
def test_append_method(text: str, call: str, expected: str, fixed: Fixed) -> None:
    assert fixed(text, call, PREFETCH) == expected
    crlf = text.replace("\n", "\r\n")
    assert fixed(crlf, call, PREFETCH) == expected.replace("\n", "\r\n")


def test_what_is_gone_is_declined(fixed: Fixed) -> None:
    assert fixed(f"{HEAD}ds = ds.batch(2)\n", "ds.batch", PREFETCH) == "no call stands there any more"


def test_a_literal_argument_needs_no_name(fixed: Fixed) -> None:
    change = {"kind": "append-method", "method": "batch", "argument": "32"}
    assert fixed("ds = f(ds)\n", "f(ds)", change) == "ds = f(ds).batch(32)\n"
