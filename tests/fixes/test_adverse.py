"""Programs that are written in every way but the usual one: what «stands in marks» is what the fixes add.

All of them run through the real rules, the real lint of what came of it, and once more.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tflint_gpu.cli.run import lint, relinter
from tflint_gpu.config import Settings
from tflint_gpu.fixes import FixReport, apply_fixes
from tflint_gpu.source.discovery import absolute_path, source_file

SETTINGS = Settings(select=("TFG101", "TFG102", "TFG602"), tensorflow="2.9")
#: A function that runs Python, so that nothing makes its map parallel but the argument.
HEAD = (
    "import tensorflow as tf\n"
    "def f(x, y):\n    return tf.numpy_function(g, [x], tf.float32), y\n"
    "def g(x):\n    return x\n"
)
DATA = "tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1])))"
MODEL = 'm = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nm.compile("adam", "mse")\n'
FIT = "m.fit(ds, epochs=3)\n"
CALLS = "«, num_parallel_calls=tf.data.AUTOTUNE»"
AHEAD = "«.prefetch(tf.data.AUTOTUNE)»"
CHAIN = f"{DATA}.map(f{CALLS}).batch(32){AHEAD}"
MARKS = re.compile("«(.*?)»", re.DOTALL)

#: Whole programs, but for `HEAD`.
SCRIPTS = {
    "backslashes": f"ds = {DATA} \\\n    .map(f{CALLS}) \\\n    .batch(32)« \\\n    "
    ".prefetch(tf.data.AUTOTUNE)»  # 32\n" + MODEL + FIT,
    "one line": f"ds = {DATA}; ds = ds.map(f{CALLS}); ds = ds.batch(32){AHEAD}; x = 1\n" + MODEL + FIT,
    "a semicolon at the end": f"ds = {CHAIN};\n" + MODEL + FIT,
    "a walrus": MODEL + f"if (ds := {CHAIN}) is not None: m.fit(ds, epochs=3)\n",
    "a lambda": f"make = lambda: {CHAIN}\nds = make()\n" + MODEL + FIT,
    "a default": MODEL + f"def train(ds={CHAIN}):\n    m.fit(ds, epochs=3)\ntrain()\n",
    "a class body": f"class C:\n    ds = {CHAIN}\n" + MODEL + "m.fit(C.ds, epochs=3)\n",
    "a comprehension": f"sets = [{CHAIN} for _ in (1, 2)]\n"
    + MODEL
    + "for ds in sets:\n    m.fit(ds, epochs=3)\n",
    "match": "import sys\nmatch sys.argv:\n"
    f"    case [_]:\n        ds = {CHAIN}\n    case _:\n        ds = {CHAIN}\n" + MODEL + FIT,
    "async": f"async def make():\n    return {CHAIN}\nasync def go():\n"
    + "".join(f"    {line}\n" for line in (MODEL + "m.fit(await make(), epochs=3)").splitlines()),
    "a condition": f"import sys\nds = {CHAIN} if sys.argv else {CHAIN}\n" + MODEL + FIT,
    "a generator": f"def sets():\n    yield {CHAIN}\nds = next(sets())\n" + MODEL + FIT,
    "a dict": f"sets = {{'train': {CHAIN}, 'n': 3}}\n" + MODEL + "m.fit(sets['train'], epochs=3)\n",
    "an unpacked pair": f"ds, n = {CHAIN}, 3\n" + MODEL + FIT,
    "try on one line": f"try: ds = {CHAIN}\nfinally: pass\n" + MODEL + FIT,
    "an annotation": f"ds: tf.data.Dataset = {CHAIN}  # type: ignore\n" + MODEL + FIT,
    "an f-string": f"ds = {DATA}.map(f{CALLS}).batch(int(f'{{32}}')){AHEAD}\n" + MODEL + FIT,
    "a generator expression": f"ds = {DATA}.map(f{CALLS}).batch(sum(i for i in (30, 2))){AHEAD}\n" + MODEL + FIT,
    "commas": f"ds = {DATA}.map(f,« num_parallel_calls=tf.data.AUTOTUNE,»).batch(32,){AHEAD}\n" + MODEL + FIT,
    "parentheses": f"ds = ({DATA}).map(f{CALLS}).batch((32)){AHEAD}\n" + MODEL + FIT,
    "comments": f"ds = {DATA}.map(  # all\n    f«,»  # slow«\n    num_parallel_calls=tf.data.AUTOTUNE»\n"
    f"    # why\n).batch(  # some\n    32  # fit\n){AHEAD}\n" + MODEL + FIT,
    "tabs": f"if 1:\n\tds = {DATA}.map(\n\t\tf,«\n\t\tnum_parallel_calls=tf.data.AUTOTUNE,»\n"
    f"\t).batch(\n\t\t32\n\t){AHEAD}\n" + MODEL + FIT,
    "form feeds": f"\f\nds = {DATA}.map(f{CALLS})\f.batch(32){AHEAD}\n\fx = 2\n" + MODEL + FIT,
    "line separators in text": f"# \x0b \x1c \x85 \u2029\ns = 'a\u2028\fb'; ds = {CHAIN}\n" + MODEL + FIT,
    "wide characters": f"ä = '\U0001f600é'; ds = {CHAIN}  # ü\n" + MODEL + FIT,
    "strings over lines": f"s = '''a\nb'''; t = 'a\\\nb'; ds = {CHAIN}\n" + MODEL + FIT,
    "no line end": MODEL + f"m.fit({CHAIN}, epochs=3)",
    "unpacked arguments": f"args = (f,)\nds = {DATA}.map(*args).batch(32){AHEAD}\n" + MODEL + FIT,
    "one data set for two trainings": f"ds = {CHAIN}\n" + MODEL + FIT + FIT,
    "one function for two data sets": f"def make(n):\n    return {DATA}.map(f{CALLS}).batch(n){AHEAD}\n"
    + MODEL
    + "m.fit(make(32), epochs=3)\nm.fit(make(64), epochs=3)\n",
    "a name for AUTOTUNE": "from tensorflow.data import AUTOTUNE as AT\n"
    + f"ds = {CHAIN}\n".replace("tf.data.AUTOTUNE", "AT")
    + MODEL
    + FIT,
    "a name for AUTOTUNE that a parameter hides": "AUTO = tf.data.AUTOTUNE\n"
    f"def make(AUTO):\n    return {CHAIN}\nds = make(4)\n" + MODEL + FIT,
    "AUTOTUNE means something else": f"AUTOTUNE = 8\nds = {CHAIN}\n" + MODEL + FIT,
}


def fixed(raw: bytes, name: str = "a.py") -> tuple[bytes, FixReport]:
    source = source_file(absolute_path(name), explicit=True, content=raw)
    result = lint([source], SETTINGS)
    assert not result.errors
    done = apply_fixes(
        result.findings, {name: raw}.get, relinter(result, SETTINGS), tensorflow=(2, 9), unsafe=True
    )
    return done.changed[0].after if done.changed else raw, done


def same(after: str, expected: str) -> bool:
    """Show what differs, not two programs."""
    told = difflib.unified_diff(expected.split("\n"), after.split("\n"), lineterm="", n=0)
    assert "\n".join(told) == ""
    return True


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_script(name: str, end: str) -> None:
    text = (HEAD + SCRIPTS[name]).replace("\n", end)
    after, _ = fixed(MARKS.sub("", text).encode())
    assert same(after.decode(), MARKS.sub(r"\1", text))
    assert fixed(after)[0] == after


@pytest.mark.parametrize(
    ("first", "encoding"),
    [
        ("# -*- coding: latin-1 -*-\n", "latin-1"),
        ("#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        ("", "utf-8-sig"),
    ],
    ids=["latin-1", "cp1252 in the second line", "a mark of UTF-8"],
)
def test_an_encoding_is_kept(first: str, encoding: str) -> None:
    text = first + HEAD + f"s = 'café'; ds = {CHAIN}  # naïf\n" + MODEL + FIT
    after, _ = fixed(MARKS.sub("", text).encode(encoding))
    assert after == MARKS.sub(r"\1", text).encode(encoding)


def test_a_hidden_tensorflow_is_imported_under_another_name() -> None:
    text = HEAD + f"def make(tf):\n    return data.map(f{CALLS}).batch(32){AHEAD}\ndata = {DATA}\nds = make(4)\n"
    text = (text + MODEL + FIT).replace("tf.data.AUTOTUNE", "tensorflow.data.AUTOTUNE")
    after, _ = fixed(MARKS.sub("", text).encode())
    wanted = MARKS.sub(r"\1", text)
    assert same(after.decode(), wanted.replace("as tf\n", "as tf\nimport tensorflow\n", 1))


DEBUGGED = f"ds = {DATA}.batch(32).prefetch(1)\nm = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        (
            "m.compile(loss='mse', run_eagerly=(True), optimizer='adam',)",
            "m.compile(loss='mse', optimizer='adam',)",
        ),
        ("x = 1; m.compile('adam', 'mse', run_eagerly=True); y = 2", "x = 1; m.compile('adam', 'mse'); y = 2"),
        ("m.compile('adam', 'mse')\nm.run_eagerly = True", "m.compile('adam', 'mse')"),
        ("m.compile('adam', 'mse',\n    run_eagerly=True  # to see shapes\n)", "a comment speaks of the argument"),
        ("m.compile('adam', 'mse')\nif True:\n    m.run_eagerly = True", "its block holds nothing else"),
        ("m.compile('adam', 'mse'); m.run_eagerly = True", "the statement shares its line"),
    ],
)
def test_a_switch_goes_or_stays_with_a_reason(line: str, after: str) -> None:
    text = f"{HEAD}{DEBUGGED}{line}\n{FIT}"
    changed, done = fixed(text.encode())
    if after.startswith(("m.", "x")):
        assert same(changed.decode(), text.replace(line, after))
    else:
        assert changed.decode() == text
        assert [refusal.reason for refusal in done.declined if after in refusal.reason]


IMPORT = "import tensorflow as tf"
TRAIN = MODEL + "m.fit(ds, epochs=3)"

#: The sources of cells.
NOTEBOOKS = {
    "pip": ["!pip install -q x\n%load_ext tensorboard\n" + IMPORT, f"!ls\nds = {DATA}.batch(32){AHEAD}", TRAIN],
    "a semicolon": [IMPORT, f"ds = {DATA}.batch(32){AHEAD};", TRAIN + ";"],
    "cell magics": [IMPORT, f"%%time\nds = {DATA}.batch(32){AHEAD}", "%%capture out\n" + TRAIN],
    "a line magic": [IMPORT, f"%timeit ds.batch(32)\n%time ds = {DATA}.batch(32){AHEAD}", TRAIN],
    "help": [IMPORT, f"ds?\nds = {DATA}.batch(32){AHEAD}\n?ds", TRAIN],
    "a command's output": [IMPORT, f"n = !ls\nds = {DATA}.batch(len(n) or 32){AHEAD}", TRAIN],
    "a command in a block": [IMPORT, f"if True:\n    !ls\n    ds = {DATA}.batch(32){AHEAD}", TRAIN],
    "another language": [IMPORT, "%%bash\necho ds.batch(32)", f"ds = {DATA}.batch(32){AHEAD}", TRAIN],
    "a chain": [IMPORT, f"ds = (\n  {DATA}\n  .batch(32)«\n  .prefetch(tf.data.AUTOTUNE)»\n)\n!ls", TRAIN],
    "a file": [
        f"%%writefile data.py\n{IMPORT}\ndef load():\n    return {DATA}.batch(32){AHEAD}",
        f"{IMPORT}\nfrom data import load",
        TRAIN.replace("ds", "load()"),
    ],
    "an import": [
        "«import tensorflow as tf\n»from tensorflow import keras, zeros",
        "from tensorflow.data import Dataset\n"
        + f"ds = {DATA}.batch(32)".replace("tf.data.", "").replace("tf.", "")
        + AHEAD,
        TRAIN.replace("tf.", ""),
    ],
}


def notebook(cells: Sequence[str], *, whole: bool) -> dict[str, object]:
    code = [
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {"é": 1.50},
            "outputs": [{"output_type": "stream", "text": ["ds.batch(32)\n"]}],
            "source": cell if whole else cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    return {"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("whole", [False, True], ids=["lines", "one string"])
def test_a_notebook(name: str, whole: bool) -> None:
    before, wanted = ([MARKS.sub(text, cell) for cell in NOTEBOOKS[name]] for text in ("", r"\1"))
    raw = json.dumps(notebook(before, whole=whole), indent=1, ensure_ascii=False).encode()
    after, _ = fixed(raw, "a.ipynb")
    assert same(after.decode(), json.dumps(notebook(wanted, whole=whole), indent=1, ensure_ascii=False))
    assert fixed(after, "a.ipynb")[0] == after
