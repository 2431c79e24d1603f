"""Objects of the project's classes: fields, methods, properties, inheritance."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, sizes, trained

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "item of an object": """
class D:
    def __getitem__(self, key): return base.batch(32)
model.fit(D()['train'])
""",
    "annotated settings that nobody makes": """
import hydra
from dataclasses import dataclass
@dataclass
class Cfg:
    n: int = 32
@hydra.main(config_name='c')
def main(cfg: Cfg): model.fit(base.batch(cfg.n))
if __name__ == '__main__': main()
""",
    "static": """
class D:
    @staticmethod
    def f(ds): return ds.batch(32)
model.fit(D.f(base))
""",
    "static inst": """
class D:
    @staticmethod
    def f(ds): return ds.batch(32)
model.fit(D().f(base))
""",
    "clsm alt ctor": """
class D:
    def __init__(self, ds): self.ds = ds
    @classmethod
    def make(cls, ds): return cls(ds.batch(32))
model.fit(D.make(base).ds)
""",
    "prop cached": """
import functools
class D:
    @functools.cached_property
    def ds(self): return base.batch(32)
model.fit(D().ds)
""",
    "prop setter": """
class D:
    @property
    def ds(self): return self._ds
    @ds.setter
    def ds(self, v): self._ds = v.batch(32)
d = D()
d.ds = base
model.fit(d.ds)
""",
    "self chain": """
class D:
    def __init__(self):
        self.ds = base
    def b(self):
        self.ds = self.ds.batch(32)
        return self
model.fit(D().b().ds)
""",
    "inherit super init": """
class A:
    def __init__(self, n):
        self.n = n
class D(A):
    def __init__(self):
        super().__init__(32)
    def get(self): return base.batch(self.n)
model.fit(D().get())
""",
    "super old": """
class A:
    def __init__(self, n):
        self.n = n
class D(A):
    def __init__(self):
        super(D, self).__init__(32)
    def get(self): return base.batch(self.n)
model.fit(D().get())
""",
    "base init direct": """
class A:
    def __init__(self, n):
        self.n = n
class D(A):
    def __init__(self):
        A.__init__(self, 32)
    def get(self): return base.batch(self.n)
model.fit(D().get())
""",
    "mro super chain": """
class A:
    def f(self, ds): return ds
class B1(A):
    def f(self, ds): return super().f(ds)
class C1(A):
    def f(self, ds): return super().f(ds).batch(32)
class D(B1, C1):
    pass
model.fit(D().f(base))
""",
    "abstract": """
import abc
class A(abc.ABC):
    @abc.abstractmethod
    def get(self): ...
    def run(self): model.fit(self.get())
class D(A):
    def get(self): return base.batch(32)
D().run()
""",
    "mixin": """
class M:
    def run(self): model.fit(self.get())
class D(M):
    def get(self): return base.batch(32)
D().run()
""",
    "class attr fn": """
class D:
    end = lambda self, ds: ds.batch(32)
model.fit(D().end(base))
""",
    "class attr size": """
class D:
    N = 32
    def get(self): return base.batch(self.N)
model.fit(D().get())
""",
    "class attr size2": """
class D:
    N = 32
    def get(self): return base.batch(D.N)
model.fit(D().get())
""",
    "class attr cls": """
class D:
    N = 32
    def get(self): return base.batch(type(self).N)
model.fit(D().get())
""",
    "class attr cls2": """
class D:
    N = 32
    def get(self): return base.batch(self.__class__.N)
model.fit(D().get())
""",
    "instance attr outside": """
class D: pass
d = D()
d.ds = base.batch(32)
model.fit(d.ds)
""",
    "call inst": """
class D:
    def __call__(self, ds): return ds.batch(32)
model.fit(D()(base))
""",
    "class decorated": """
import functools
def keep(c): return c
@keep
class D:
    def get(self): return base.batch(32)
model.fit(D().get())
""",
    "dataclass": """
import dataclasses
@dataclasses.dataclass
class C:
    n: int = 16
model.fit(base.batch(C(n=32).n))
""",
    "dataclass frozen": """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class C:
    n: int = field(default=32)
def run(cfg: C): model.fit(base.batch(cfg.n))
run(C())
""",
    "dataclass nested": """
from dataclasses import dataclass, field
@dataclass
class D:
    n: int = 32
@dataclass
class C:
    data: D = field(default_factory=D)
model.fit(base.batch(C().data.n))
""",
    "dataclass replace": """
import dataclasses
@dataclasses.dataclass
class C:
    n: int = 16
model.fit(base.batch(dataclasses.replace(C(), n=32).n))
""",
    "dataclass post": """
import dataclasses
@dataclasses.dataclass
class C:
    n: int = 16
    def __post_init__(self): self.m = self.n*2
model.fit(base.batch(C().m))
""",
    "dataclass inherit": """
import dataclasses
@dataclasses.dataclass
class A:
    m: int = 1
@dataclasses.dataclass
class C(A):
    n: int = 16
model.fit(base.batch(C(1, 32).n))
""",
    "namedtuple": """
from typing import NamedTuple
class C(NamedTuple):
    n: int = 32
model.fit(base.batch(C().n))
""",
    "namedtuple fn": """
import collections
C = collections.namedtuple('C', 'n m')
model.fit(base.batch(C(32, 1).n))
""",
    "namedtuple fn2": """
from collections import namedtuple
C = namedtuple('C', ['n', 'm'])
model.fit(base.batch(C(n=32, m=1).n))
""",
    "namedtuple unpack": """
from typing import NamedTuple
class C(NamedTuple):
    ds: object
    n: int
ds, n = C(base, 32)
model.fit(ds.batch(n))
""",
    "simplenamespace": """
from types import SimpleNamespace
c = SimpleNamespace(n=32)
model.fit(base.batch(c.n))
""",
    "enum": """
import enum
class E(enum.Enum):
    N = 32
model.fit(base.batch(E.N.value))
""",
    "intenum": """
import enum
class E(enum.IntEnum):
    N = 32
model.fit(base.batch(E.N))
""",
    "nested class": """
class A:
    class B:
        n = 32
model.fit(base.batch(A.B.n))
""",
    "slots": """
class A:
    __slots__ = ('ds',)
    def __init__(self): self.ds = base.batch(32)
model.fit(A().ds)
""",
    "meta": """
class M(type):
    pass
class A(metaclass=M):
    def get(self): return base.batch(32)
model.fit(A().get())
""",
    "generic": """
from typing import Generic, TypeVar
T = TypeVar('T')
class A(Generic[T]):
    def get(self): return base.batch(32)
model.fit(A[int]().get())
""",
    "subscripted call": """
class A:
    def get(self): return base.batch(32)
x = [A(), A()]
model.fit(x[0].get())
""",
    "setattr": """
class A: pass
a = A()
setattr(a, 'ds', base.batch(32))
model.fit(a.ds)
""",
    "setattr self kw": """
class A:
    def __init__(self, **kw):
        for k, v in kw.items():
            setattr(self, k, v)
model.fit(A(ds=base.batch(32)).ds)
""",
    "dict update self": """
class A:
    def __init__(self, **kw):
        self.__dict__.update(kw)
model.fit(A(ds=base.batch(32)).ds)
""",
    "getattr default": """
class A:
    n = 32
model.fit(base.batch(getattr(A, 'n', 4)))
""",
    "getattr default missing": """
class A:
    m = 32
model.fit(base.batch(getattr(A(), 'n', 32)))
""",
    "const mod": """
class Config:
    BATCH = 32
    @classmethod
    def size(cls): return cls.BATCH
model.fit(base.batch(Config.size()))
""",
    "annassign self": """
class D:
    def __init__(self):
        self.ds: tf.data.Dataset = base.batch(32)
model.fit(D().ds)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline_is_followed(read: Read, name: str) -> None:
    program = read(PROGRAMS[name])

    assert ["from_tensor_slices", "batch"] in trained(program)
    assert 32 in sizes(program)
