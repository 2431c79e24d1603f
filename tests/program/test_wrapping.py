"""However a pipeline is wrapped up, its findings stay the same: a property, over generated pipelines.

A chain of stages is written plainly, and then through a helper, a method, another module, a notebook cell …: the
program does the same, so the same rules must speak of the same stages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.program.conftest import notebook
from tflint_gpu.cli.run import lint
from tflint_gpu.config import Settings
from tflint_gpu.source.discovery import discover

#: Every program's own part; the tag at the end of a line says which stage it is.
HEAD = """\
import tensorflow as tf

def decode(x, y):
    return tf.image.random_flip_left_right(x), y

def scale(x, y):
    return tf.cast(x, tf.float32) / 255.0, y

def slow(x, y):
    return tf.py_function(lambda a: a, [x], tf.float32), y

x = tf.zeros([4096, 8])
base = tf.data.Dataset.from_tensor_slices((x, x))
model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(512), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
"""
STAGES = (
    ".map(decode)",
    ".map(scale)",
    ".map(slow)",
    ".map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    ".cache()",
    ".shuffle(1000)",
    ".repeat()",
    ".batch(1)",
    ".batch(32)",
    ".batch(256, drop_remainder=True)",
    ".prefetch(tf.data.AUTOTUNE)",
    ".prefetch(2)",
    ".take(100)",
)
Files = dict[str, str | list[str]]


def lines(chain: list[str], start: str = "base", indent: str = "    ") -> str:
    """Return statements that put `start` through `chain` into ``ds``, a tagged line for each stage."""
    text = f"{indent}ds = {start}\n"
    return text + "".join(f"{indent}ds = ds{stage}  # stage {i}\n" for i, stage in enumerate(chain))


def plain(chain: list[str]) -> Files:
    return {"train.py": HEAD + lines(chain, indent="") + "model.fit(ds)\n"}


def helper(chain: list[str]) -> Files:
    return {"train.py": HEAD + f"def make(ds):\n{lines(chain, 'ds')}    return ds\n\nmodel.fit(make(base))\n"}


def main(chain: list[str]) -> Files:
    text = f"def main():\n{lines(chain)}    model.fit(ds)\n\nif __name__ == '__main__':\n    main()\n"
    return {"train.py": HEAD + text}


def method(chain: list[str]) -> Files:
    body = lines(chain, "self.rows", "        ")
    text = f"class Data:\n    def __init__(self, rows): self.rows = rows\n    def make(self):\n{body}"
    return {"train.py": HEAD + text + "        return ds\n" + "\nmodel.fit(Data(base).make())\n"}


def attribute(chain: list[str]) -> Files:
    body = lines(chain, "base", "        ")
    text = f"class Data:\n    def __init__(self):\n{body}        self.ds = ds\n"
    return {"train.py": HEAD + text + "\nmodel.fit(Data().ds)\n"}


def prop(chain: list[str]) -> Files:
    body = lines(chain, "base", "        ")
    text = f"class Data:\n    @property\n    def ds(self):\n{body}        return ds\n"
    return {"train.py": HEAD + text + "\nmodel.fit(Data().ds)\n"}


def hierarchy(chain: list[str]) -> Files:
    half = len(chain) // 2
    first, second = lines(chain[:half], "base", "        "), lines(chain[half:], "super().make()", "        ")
    second = second.replace("# stage ", "# late ")
    text = (
        f"class Base:\n    def make(self):\n{first}        return ds\n"
        "    def run(self):\n        model.fit(self.make())\n"
        f"class Data(Base):\n    def make(self):\n{second}        return ds\n"
    )
    return {"train.py": HEAD + text + "\nData().run()\n"}


def partial(chain: list[str]) -> Files:
    text = f"import functools\n\ndef make(unused, ds):\n{lines(chain, 'ds')}    return ds\n"
    return {"train.py": HEAD + text + "\nmodel.fit(functools.partial(make, None)(base))\n"}


def lambdas(chain: list[str]) -> Files:
    made = "".join(f"f{i} = lambda ds: ds{stage}  # stage {i}\n" for i, stage in enumerate(chain))
    steps = "".join(f"ds = f{i}(ds)\n" for i in range(len(chain)))
    return {"train.py": HEAD + made + "ds = base\n" + steps + "model.fit(ds)\n"}


def table(chain: list[str]) -> Files:
    rows = "".join(f"    lambda ds: ds{stage},  # stage {i}\n" for i, stage in enumerate(chain))
    loop = "ds = base\nfor step in STEPS:\n    ds = step(ds)\nmodel.fit(ds)\n"
    return {"train.py": HEAD + f"STEPS = [\n{rows}]\n" + loop}


def applied(chain: list[str]) -> Files:
    return {
        "train.py": HEAD + f"def make(ds):\n{lines(chain, 'ds')}    return ds\n\nmodel.fit(base.apply(make))\n"
    }


def closure(chain: list[str]) -> Files:
    inner = lines(chain, "rows", "        ")
    text = f"def outer(rows):\n    def inner():\n{inner}        return ds\n    return inner\n"
    return {"train.py": HEAD + text + "\nmodel.fit(outer(base)())\n"}


def decorated(chain: list[str]) -> Files:
    body = lines(chain, "function(*args)", "        ")
    text = f"def ended(function):\n    def longer(*args):\n{body}        return ds\n    return longer\n"
    return {"train.py": HEAD + text + "\n@ended\ndef data():\n    return base\n\nmodel.fit(data())\n"}


def generator(chain: list[str]) -> Files:
    text = f"import contextlib\n\n@contextlib.contextmanager\ndef data():\n{lines(chain)}    yield ds\n"
    return {"train.py": HEAD + text + "\nwith data() as rows:\n    model.fit(rows)\n"}


def coroutine(chain: list[str]) -> Files:
    text = f"import asyncio\n\nasync def data():\n{lines(chain)}    return ds\n"
    return {"train.py": HEAD + text + "\nasync def main():\n    model.fit(await data())\n\nasyncio.run(main())\n"}


def splits(chain: list[str]) -> Files:
    text = (
        f"def make(split):\n{lines(chain)}    return ds\n\nsets = {{split: make(split) for split in ['train']}}\n"
    )
    return {"train.py": HEAD + text + "model.fit(sets['train'])\n"}


def config(chain: list[str]) -> Files:
    text = (
        "import dataclasses\n@dataclasses.dataclass\nclass Config:\n    rows: object\n    training: bool = True\n"
    )
    body = f"    if not config.training:\n        return None\n{lines(chain, 'config.rows')}    return ds\n"
    return {"train.py": f"{HEAD}{text}def make(config):\n{body}\nmodel.fit(make(Config(base)))\n"}


def _elsewhere(chain: list[str]) -> str:
    heading = HEAD[: HEAD.index("x = tf.zeros")]
    return heading + f"def make(ds):\n{lines(chain, 'ds')}    return ds\n"


def module(chain: list[str]) -> Files:
    return {"data.py": _elsewhere(chain), "train.py": HEAD + "import data\nmodel.fit(data.make(base))\n"}


def relative(chain: list[str]) -> Files:
    return {
        "own/__init__.py": "",
        "own/data.py": _elsewhere(chain),
        "own/train.py": HEAD + "from .data import make\nmodel.fit(make(base))\n",
    }


def reexported(chain: list[str]) -> Files:
    return {
        "own/__init__.py": "from own.inner import make\n",
        "own/inner/__init__.py": "from .data import make as make\n",
        "own/inner/data.py": _elsewhere(chain),
        "train.py": HEAD + "from own import make\nmodel.fit(make(base))\n",
    }


def star(chain: list[str]) -> Files:
    return {"src/data.py": _elsewhere(chain), "train.py": HEAD + "from data import *\nmodel.fit(make(base))\n"}


def cell(chain: list[str]) -> Files:
    cells = ["%matplotlib inline\n" + HEAD, "%%time\n" + lines(chain, indent=""), "!nvidia-smi\nmodel.fit(ds)\n"]
    return {"train.ipynb": cells}


WRAPPINGS: tuple[Callable[[list[str]], Files], ...] = (
    helper,
    main,
    method,
    attribute,
    prop,
    hierarchy,
    partial,
    lambdas,
    table,
    applied,
    closure,
    decorated,
    generator,
    coroutine,
    splits,
    config,
    module,
    relative,
    reexported,
    star,
    cell,
)


@contextmanager
def working_in(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def findings(files: Files, chain: list[str]) -> list[tuple[str, str]]:
    """Return rule and stage of every finding, "" for those that stand elsewhere."""
    with tempfile.TemporaryDirectory() as folder, working_in(folder):
        for name, text in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(notebook(*text) if isinstance(text, list) else text, encoding="utf-8")
        options = Settings(tensorflow="2.10", pedantic=True)
        result = lint(discover(["."], options), options)
        assert not result.errors
        sources = {file.path: file.read() for file in result.files}
        found = {
            (
                finding.name,
                _stage(sources[finding.location.path].line(finding.location.line, finding.location.cell), chain),
            )
            for finding in result.findings
        }
    return sorted(found)


def _stage(line: str, chain: list[str]) -> str:
    """Return the stage that a tagged line holds."""
    return next((stage for stage in chain if "# " in line and stage in line), "")


@settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(st.sampled_from(STAGES), min_size=1, max_size=6), st.sampled_from(WRAPPINGS))
def test_wrapping_a_chain_changes_no_finding(chain: list[str], wrap: Callable[[list[str]], Files]) -> None:
    assert findings(wrap(chain), chain) == findings(plain(chain), chain)


@pytest.mark.parametrize("wrap", WRAPPINGS, ids=lambda wrap: wrap.__name__)
def test_every_wrapping_keeps_the_findings_of_a_slow_chain(wrap: Callable[[list[str]], Files]) -> None:
    chain = [".map(slow)", ".map(decode)", ".cache()", ".batch(1)"]
    expected = findings(plain(chain), chain)

    assert {"python-op-in-map", "cache-after-random", "tiny-batch"} <= {rule for rule, _ in expected}
    assert findings(wrap(chain), chain) == expected
