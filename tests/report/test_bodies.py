"""Of a function's decorators and ``def`` the body says whether a trace reached them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.report.conftest import evidence
from tflint_gpu.findings import Location
from tflint_gpu.report import Texts
from tflint_gpu.report.court import Court
from tflint_gpu.trace.follow import remember

BUILT = """\
import tensorflow as tf


@tf.function(
    jit_compile=True,
)
def compiled(
    x=tf.zeros([1]),
):
    \"\"\"One line runs.\"\"\"
    if x:
        return x
    return x + 1


class Trainer:
    @staticmethod
    async def step(x): return x
"""
HEAD = Location("built.py", 4, 2, 6, 2)
#: Lines of `BUILT` that run where its function is made, and nobody calls it.
MADE = (1, 4, 5, 7, 8, 16, 17, 18)


@pytest.mark.parametrize(
    ("where", "ran", "called"),
    [
        ((4, 2, 6, 2), MADE, False),
        ((7, 1, 9, 3), MADE, False),
        ((7, 1, 13, 17), MADE, False),
        ((4, 2, 6, 2), (*MADE, 13), True),
        ((7, 1, 9, 3), (*MADE, 11), True),
        ((7, 1, 13, 17), (*MADE, 13), True),
        ((8, 7, 8, 20), MADE, True),
        ((17, 6, 17, 18), MADE, True),
        ((16, 1, 16, 15), MADE, True),
    ],
    ids=[
        "a decorator of what nobody calls",
        "a def that nobody calls",
        "a def and lines of its body, none of them called",
        "a decorator of what is called",
        "a def that is called",
        "a def and its body, called",
        "a default, which is worked out where the function is made",
        "a function in one line, of which nobody can tell",
        "a class",
    ],
)
@pytest.mark.parametrize("notebook", [False, True], ids=["script", "notebook"])
def test_the_head_of_a_function_ran_if_its_body_did(
    where: tuple[int, int, int, int], ran: tuple[int, ...], called: bool, notebook: bool, texts: Texts
) -> None:
    path, key, cell = ("n.ipynb", "n.ipynb#2", 2) if notebook else ("built.py", "built.py", None)
    cells = [{"cell_type": "code", "source": text} for text in ("%matplotlib inline\nx = 1\n", BUILT)]
    write(texts, path, json.dumps({"cells": cells, "nbformat": 4}) if notebook else BUILT)
    assert court(texts, path, {key: ran}).never_ran(Location(path, *where, cell)) is not called


def test_a_head_whose_body_was_edited_since_is_judged_as_it_stands(texts: Texts) -> None:
    write(texts, "built.py", BUILT)
    seen = court(texts, "built.py", {"built.py": (*MADE, 11, 13)}).evidence
    write(texts, "built.py", BUILT.replace("if x:", "if x > 1:").replace("x + 1", "x + 2"))
    edited = Court([], replace(seen, lines=remember("built.py", BUILT.encode())), Texts(texts.root))
    assert not edited.never_ran(HEAD)


@pytest.mark.parametrize("text", ["def step(:\n    pass\n", "\0"], ids=["not Python", "not text"])
def test_a_file_that_cannot_be_read_is_judged_by_its_lines(texts: Texts, text: str) -> None:
    write(texts, "built.py", text)
    assert not court(texts, "built.py", {"built.py": (1,)}).never_ran(Location("built.py", 1))
    assert court(texts, "built.py", {"built.py": (1,)}).never_ran(Location("built.py", 2))


def write(texts: Texts, path: str, text: str) -> None:
    (texts.root / path).write_text(text, encoding="utf-8")


def court(texts: Texts, path: str, executed: dict[str, tuple[int, ...]]) -> Court:
    return Court([], evidence(sources={path: texts.digest(path) or ""}, executed=executed), texts)
