"""Imports: which file a name comes from."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, sizes, trained

#: Files of a project in which ``train.py`` trains on `base` in batches of 32.
PROJECTS: dict[str, dict[str, str | list[str]]] = {
    "abs": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
import data
model.fit(data.ended(base))
""",
    },
    "from as": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from data import ended as e
model.fit(e(base))
""",
    },
    "reexport": {
        "pkg/__init__.py": "from .inner import *\n",
        "pkg/inner/__init__.py": """
from .data import ended
__all__=['ended']
""",
        "pkg/inner/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from pkg import ended
model.fit(ended(base))
""",
    },
    "star all private": {
        "data.py": """
__all__ = ['_ended']
def _ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from data import *
model.fit(_ended(base))
""",
    },
    "import sub as": {
        "pkg/__init__.py": "",
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
import pkg.data as d
model.fit(d.ended(base))
""",
    },
    "from pkg import mod": {
        "pkg/__init__.py": "",
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from pkg import data
model.fit(data.ended(base))
""",
    },
    "from ns import mod": {
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from pkg import data
model.fit(data.ended(base))
""",
    },
    "ns deep": {
        "pkg/sub/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from pkg.sub.data import ended
model.fit(ended(base))
""",
    },
    "import two sub": {
        "pkg/__init__.py": "",
        "pkg/a.py": "def f(ds): return ds.cache()\n",
        "pkg/b.py": "def g(ds): return ds.batch(32)\n",
        "train.py": """
import pkg.a
import pkg.b
model.fit(pkg.b.g(pkg.a.f(base)))
""",
    },
    "ns two sub": {
        "pkg/a.py": "def f(ds): return ds.cache()\n",
        "pkg/b.py": "def g(ds): return ds.batch(32)\n",
        "train.py": """
import pkg.a
import pkg.b
model.fit(pkg.b.g(pkg.a.f(base)))
""",
    },
    "rel dot": {
        "pkg/__init__.py": "",
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "pkg/train.py": """
from . import data
model.fit(data.ended(base))
""",
    },
    "rel ns": {
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "pkg/train.py": """
from . import data
model.fit(data.ended(base))
""",
    },
    "rel up": {
        "pkg/__init__.py": "SIZE=32\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/train.py": """
from .. import SIZE
model.fit(base.batch(SIZE))
""",
    },
    "rel up mod": {
        "pkg/data/__init__.py": """
def ended(ds):
    return ds.batch(32)
""",
        "pkg/sub/train.py": """
from ..data import ended
model.fit(ended(base))
""",
    },
    "multi line import": {
        "pkg/__init__.py": "",
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
def other(ds): return ds
""",
        "train.py": """
from pkg.data import (
    other,
    ended,
)
model.fit(ended(base))
""",
    },
    "multi line import mod": {
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from pkg import (
    data,
)
model.fit(data.ended(base))
""",
    },
    "multi line rel": {
        "pkg/__init__.py": "",
        "pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "pkg/train.py": """
from . import (
    data,
)
model.fit(data.ended(base))
""",
    },
    "src": {
        "src/pkg/__init__.py": "",
        "src/pkg/data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "scripts/train.py": """
from pkg.data import ended
model.fit(ended(base))
""",
    },
    "circular": {
        "a.py": """
import b
def f(ds): return b.g(ds)
""",
        "b.py": """
import a
def g(ds): return ds.batch(32)
""",
        "train.py": """
import a
model.fit(a.f(base))
""",
    },
    "try import": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
try:
    from data import ended
except ImportError:
    from pkg.data import ended
model.fit(ended(base))
""",
    },
    "try import rel": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
try:
    from .data import ended
except ImportError:
    from data import ended
model.fit(ended(base))
""",
    },
    "type checking": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "train.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import data
def f():
    import data
    model.fit(data.ended(base))
f()
""",
    },
    "import in fn of other": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "mid.py": """
def get(ds):
    from data import ended
    return ended(ds)
""",
        "train.py": """
from mid import get
model.fit(get(base))
""",
    },
    "import module": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "mid.py": "import data\n",
        "train.py": """
import mid, importlib
model.fit(importlib.import_module('data').ended(base))
""",
    },
    "alias module attr": {
        "data.py": """
def ended(ds):
    return ds.batch(32)
""",
        "mid.py": "import data as d\n",
        "train.py": """
import mid
model.fit(mid.d.ended(base))
""",
    },
    "module var dataset": {
        "data.py": """
import tensorflow as tf
ds = tf.data.Dataset.range(5).batch(32)
""",
        "train.py": """
from data import ds
model.fit(ds)
""",
    },
    "module set attr": {
        "config.py": "SIZE=8\n",
        "train.py": """
import config
config.SIZE = 32
model.fit(base.batch(config.SIZE))
""",
    },
    "pkg main": {
        "pkg/__init__.py": "",
        "pkg/__main__.py": """
from .train import go
go()
""",
        "pkg/train.py": """
def go():
    model.fit(base.batch(32))
""",
    },
}


@pytest.mark.parametrize("name", PROJECTS)
def test_import_is_followed(read: Read, name: str) -> None:
    program = read(PROJECTS[name])

    assert any(run and run[-1] == "batch" for run in trained(program))
    assert 32 in sizes(program)
