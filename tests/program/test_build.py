"""Which files make up a program, and that no text at all brings the reader down."""

from __future__ import annotations

import sys
import sysconfig
import time
import tracemalloc
from pathlib import Path

import pytest

from tests.program.conftest import HEAD, Read, trained
from tflint_gpu.config import Settings
from tflint_gpu.program.build import Built, build
from tflint_gpu.source.files import SourceFile

TRAINS = "\nmodel.fit(base.batch(32))\n"
WHOLE = ["from_tensor_slices", "batch"]


def built(files: dict[str, str], *needles: bytes) -> Built:
    sources = [SourceFile(name, Path("/nowhere", name), content=text.encode()) for name, text in files.items()]
    return build(sources, Settings(tensorflow="2.21"), needles)


def test_files_that_import_each_other_are_one_program() -> None:
    programs = built(
        {
            "a.py": "import tensorflow\nimport b\n",
            "b.py": "x = 1\n",
            "c.py": "import keras\n",
            "d.py": "import os\n",
        }
    ).programs

    assert [[module.path for module in program.modules] for program in programs] == [["a.py", "b.py"], ["c.py"]]


def test_program_without_any_needle_is_left_out() -> None:
    files = {"a.py": "import tensorflow\nimport b\n", "b.py": "ds.prefetch(1)\n", "c.py": "import tensorflow\n"}

    assert [program.modules[0].path for program in built(files, b".prefetch(").programs] == ["a.py"]


def test_order_of_the_files_changes_nothing() -> None:
    files = {
        "a.py": "import tensorflow\nfrom b import f\nf()\n",
        "b.py": "def f():\n    print(1)\n",
        "c/d.py": "import keras\n",
    }
    one = built(files)
    other = built(dict(reversed(files.items())))

    assert [[call.location for call in program.calls] for program in one.programs] == [
        [call.location for call in program.calls] for program in other.programs
    ]


def test_file_that_is_no_python_is_told_and_the_rest_goes_on() -> None:
    result = built({"a.py": "import tensorflow\nimport b\nprint(1)\n", "b.py": "def (:\n# keras\n"})

    assert [(error.path, error.line) for error in result.errors] == [("b.py", 1)]
    assert [call.callee for call in result.programs[0].calls] == ["builtins.print"]


def test_notebook_is_read_cell_by_cell(read: Read) -> None:
    program = read(
        {
            "train.ipynb": [
                "%load_ext autoreload\nds = base",
                "%%time\nds = ds.batch(32)",
                "!pip install x\nfiles = !ls\nmodel.fit(ds)",
                "this is no Python",
            ]
        }
    )

    assert trained(program) == [WHOLE]
    assert [(run.location.cell, run.location.line) for run in program.runs] == [(4, 3)]


DEEP = {
    "sum": "n = " + "+".join(["1"] * 9000),
    "chain": "ds = base" + ".take(5)" * 900,
    "long chain": "ds = base" + ".map(f)" * 2000,
    "attributes": "n = tf" + ".x" * 2000,
    "brackets": "n = " + "[" * 90 + "]" * 90,
    "blocks": "".join(" " * i + f"if x{i}:\n" for i in range(90)) + " " * 90 + "pass",
    "functions": "".join(" " * i + f"def f{i}():\n" for i in range(90)) + " " * 90 + "pass",
    "elif": "import sys\nif sys.argv == 0: k = 0\n"
    + "".join(f"elif sys.argv == {i}: k = {i}\n" for i in range(1500)),
    "calls": "".join(f"def f{i}(a): return f{i + 1}(a)\n" for i in range(300)) + "def f300(a): return a\nf0(1)",
    "lambdas": "f = " + "lambda: " * 80 + "1",
    "classes": "class C0: pass\n" + "".join(f"class C{i}(C{i - 1}): pass\n" for i in range(1, 300)) + "C299().x()",
}
ENDLESS = {
    "recursion": "def f(n, ds): return f(n - 1, ds) if n else ds\nf(5, base)",
    "mutual": "def f(a): return g(a)\ndef g(a): return f(a)\nf(1)",
    "recursive class": "class A:\n    def __init__(self): self.a = A()\nA().a.a.a",
    "recursive generator": "def g():\n    yield from g()\nfor a in g(): pass",
    "recursive property": "class A:\n    @property\n    def p(self): return self.p\nA().p",
    "recursive decorator": "def d(f): return d(f)\n@d\ndef g(): pass\ng()",
    "own base": "class A(A): pass\nclass B: pass\nclass B(B): pass\nB().x()",
    "list in itself": "a = []\na.append(a)\ntf.data.Dataset.zip(a)\nmodel.compile(metrics=a)",
    "dict in itself": "a = {}\na['a'] = a\ntf.data.Dataset.zip(a)\nmodel.compile(loss=a)\na['a']['a']['a']",
    "model in itself": "class M(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
    "        self.m = self\n        self.l = [self]\n    def call(self, x): return self.m(x)\nM().fit(base)",
}
LARGE = {
    "doubled list": "a = [1, 2]\n" + "a = a + a\n" * 60,
    "starred list": "a = [1, 2]\n" + "a = [*a, *a]\n" * 60,
    "extended list": "a = [1, 2]\n" + "a.extend(a)\n" * 60,
    "doubled text": "a = 'ab'\n" + "a = a + a\n" * 90,
    "formatted text": "a = 'ab'\n" + "a = f'{a}{a}'\n" * 90,
    "replaced text": "a = 'aaaaaaaa'\n" + "a = a.replace('a', 'aaaaaaaaaaaaaaaa')\n" * 30,
    "joined paths": "import os\na = 'ab'\n" + "a = os.path.join(a, a)\n" * 60,
    "powers": "a = 3\n" + "a = a ** a\n" * 10 + "b = 10 ** 10 ** 10\nc = 1 << 10 ** 15\nd = 'a' * 10 ** 15",
    "shared dicts": "a = {}\n" + "a = {'x': a, 'y': a}\n" * 60 + "model.compile(metrics=a)",
    "shared tuples": "a = (1,)\n" + "a = (a, a)\n" * 60 + "model.compile(metrics=a)\ntf.data.Dataset.zip(a)",
    "shared tensors": "a = tf.keras.Input([2])\n" + "a = a + a\n" * 900 + "tf.keras.Model(a, a)",
    "branches": "import sys\nds = base\n" + "".join(f"if sys.argv[{i}]: ds = ds.take({i})\n" for i in range(200)),
    "calls": "".join(f"def f{i}(a): return f{i + 1}([a]), f{i + 1}([a, 1]), f{i + 1}(a)\n" for i in range(20))
    + "def f20(a): return a\nf0(1)",
    "diamonds": "class C0: pass\nclass D0: pass\n"
    + "".join(
        f"class C{i}(C{i - 1}, D{i - 1}): pass\nclass D{i}(C{i - 1}, D{i - 1}): pass\n" for i in range(1, 25)
    )
    + "C24().x()",
    "loops": "L = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']\n"
    + "".join(" " * i + f"for x{i} in L:\n" for i in range(15))
    + " " * 15
    + "print(x0)",
    "long list": "a = [" + ",".join(map(str, range(20_000))) + "]",
    "long dict": "a = {" + ",".join(f"'{i}': {i}" for i in range(20_000)) + "}",
    "long text": "a = '" + "x" * 2_000_000 + "'",
}
ODD = {
    "wrong calls": "def f(a, b): pass\nf()\nf(1, 2, 3)\nf(c=3)\nf(*1, **2)\nclass A:\n    def g(): pass\nA().g()",
    "nothing given": "\n".join(
        f"{call}()"
        for call in "model.fit model.compile model.predict base.map base.batch base.apply base.zip tf.function "
        "tf.data.Dataset.zip tf.data.Dataset.from_generator tf.device tf.GradientTape super range len next zip "
        "enumerate int min sum setattr getattr vars type isinstance open print iter sorted list dict".split()
    ),
    "unpacking": "a, b = 1\n(c, d), e = [1, 2, 3]\n*f, g = {}\n[h, *i] = base\nfor j, (k, l) in base: pass",
    "targets": "with open('x') as model.y, open('z') as model.k[0]: pass\nfor base.b in []: pass\ndel a, b[0]",
    "match": "match x:\n    case [1, *_] | {'k': 3} | int(real=1) | -1 | None | 'a' | tf.b: pass\n"
    "    case {'k': v, **r}: pass\n    case (1 | 2) as q if q > 1: pass\n    case str(s): pass",
    "yield": "f = lambda: (yield)\ndef g():\n    x = yield\n    return x\nfor a in f(): pass\nnext(g())",
    "async": "async def f():\n    async with a as b, c as (d, e): pass\n    return [x async for x in y if x]",
    "classes": "class X(*[object]): pass\nclass Y(1, 'a', None): pass\nclass Z(metaclass=X): pass",
    "names": "Ünïcode = 1\n𝔘 = Ünïcode\nprint(𝔘, '\\N{SNOWMAN}', '😀', b'\\xff')",
    "future": "type X[T] = list[T]\ndef f[T](a: T) -> T: return a\nf(1)"
    if sys.version_info >= (3, 12)
    else "pass",
}


@pytest.mark.parametrize("text", [*DEEP.values(), *ENDLESS.values(), *ODD.values()], ids=[*DEEP, *ENDLESS, *ODD])
def test_hostile_text_hides_nothing_else(text: str) -> None:
    result = built({"train.py": HEAD + TRAINS + text + TRAINS})
    messages = [error.message for error in result.errors if "nested too deeply" not in error.message]
    runs = [run for program in result.programs for run in trained(program)]

    assert messages == []
    assert result.errors != [] or runs.count(WHOLE) == 2


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large_text_is_read_in_bounds(text: str) -> None:
    tracemalloc.start()
    start = time.process_time()
    result = built({"train.py": HEAD + TRAINS + text})
    seconds, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    messages = [error.message for error in result.errors]
    runs = [run for program in result.programs for run in trained(program)]

    assert messages == []
    assert WHOLE in runs
    assert seconds < 20
    assert peak < 200e6


def test_what_nests_too_deeply_is_unknown_not_what_it_was() -> None:
    deep = "ds = ds" + ".prefetch(1)" * 2500
    result = built({"train.py": f"{HEAD}ds = base.batch(32)\n{deep}\nmodel.fit(ds)\nmodel.fit(base.batch(32))\n"})
    runs = [run for program in result.programs for run in trained(program)]

    assert runs in ([], [[], WHOLE])


def test_modules_that_import_each_other(read: Read) -> None:
    program = read(
        {
            "a.py": "import b\ndef f(ds): return b.g(ds)\n",
            "b.py": "import a\ndef g(ds): return ds.batch(32)\ndef h(ds): return a.f(ds)\n",
            "train.py": "import b\nmodel.fit(b.h(base))\n",
        }
    )

    assert trained(program) == [WHOLE]


def test_standard_library_is_read_without_a_fault() -> None:
    folder = Path(sysconfig.get_paths()["stdlib"])
    packages = [path for path in sorted(folder.glob("*/*.py")) if not {"site-packages", "test"} & set(path.parts)]
    start = time.process_time()
    count = 0
    for path in [*sorted(folder.glob("*.py"))[::6], *packages[::12]]:
        text = path.read_text(encoding="utf-8", errors="replace")
        if len(text) < 80_000 and time.process_time() - start < 20:
            count += len(built({path.name: f"{text}\n# tensorflow\n"}).programs)

    assert count > 20
