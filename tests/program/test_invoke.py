"""Calls: functions, methods, closures, lambdas, partials, decorators, and what ``Dataset.apply`` is given."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, sizes, trained

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "helper": """
def f(ds, n=32):
    return ds.batch(n)
model.fit(f(base))
""",
    "kwonly": """
def f(ds, *, n=16):
    return ds.batch(n)
model.fit(f(base, n=32))
""",
    "posonly": """
def f(ds, /, n=16):
    return ds.batch(n)
model.fit(f(base, 32))
""",
    "varargs": """
def f(*parts):
    return parts[0].batch(32)
model.fit(f(base, 1))
""",
    "kwargs": """
def f(ds, **kw):
    return ds.batch(kw['n'])
model.fit(f(base, n=32))
""",
    "kwargs pass": """
def g(ds, n): return ds.batch(n)
def f(ds, **kw):
    return g(ds, **kw)
model.fit(f(base, n=32))
""",
    "kwargs direct": """
def f(ds, **kw):
    return ds.batch(**kw)
model.fit(f(base, batch_size=32))
""",
    "starstar dict": """
kw = dict(batch_size=32)
model.fit(base.batch(**kw))
""",
    "star list": """
a=[32]
model.fit(base.batch(*a))
""",
    "apply inst": """
class D:
    def __call__(self, ds): return ds.batch(32)
model.fit(base.apply(D()))
""",
    "apply lambda": """
model.fit(base.apply(lambda d: d.batch(32)))
""",
    "apply partial": """
import functools
def f(n, ds): return ds.batch(n)
model.fit(base.apply(functools.partial(f, 32)))
""",
    "apply bound": """
class D:
    def f(self, ds): return ds.batch(32)
model.fit(base.apply(D().f))
""",
    "apply unbound method": """
model.fit(tf.data.Dataset.batch(base, 32))
""",
    "partial method": """
import functools
model.fit(functools.partial(base.batch, 32)())
""",
    "partial unbound": """
import functools
model.fit(functools.partial(tf.data.Dataset.batch, batch_size=32)(base))
""",
    "bound method var": """
b = base.batch
model.fit(b(32))
""",
    "getattr method": """
model.fit(getattr(base, 'batch')(32))
""",
    "closure": """
def mk(n):
    def f(ds): return ds.batch(n)
    return f
model.fit(mk(32)(base))
""",
    "closure lambda": """
mk = lambda n: lambda ds: ds.batch(n)
model.fit(mk(32)(base))
""",
    "nonlocal": """
def mk():
    n = 1
    def s():
        nonlocal n
        n = 32
    s()
    return base.batch(n)
model.fit(mk())
""",
    "decor wraps": """
import functools
def dec(n):
    def d(f):
        @functools.wraps(f)
        def w(*a, **k): return f(*a, **k).batch(n)
        return w
    return d
@dec(32)
def get(ds): return ds
model.fit(get(base))
""",
    "decor class": """
class dec:
    def __init__(self, f): self.f = f
    def __call__(self, *a): return self.f(*a).batch(32)
@dec
def get(ds): return ds
model.fit(get(base))
""",
    "lru cache": """
import functools
@functools.lru_cache(maxsize=None)
def get(): return base.batch(32)
model.fit(get())
""",
    "timing decor": """
import time
def timed(f):
    def w(*a, **k):
        t = time.time()
        r = f(*a, **k)
        print(time.time()-t)
        return r
    return w
@timed
def get(): return base.batch(32)
model.fit(get())
""",
    "yield from": """
def g():
    yield base.batch(32)
def h():
    yield from g()
for ds in h():
    model.fit(ds)
""",
    "registry": """
R = {}
def reg(f):
    R[f.__name__] = f
    return f
@reg
def mk(): return base.batch(32)
model.fit(R['mk']())
""",
    "registry cls": """
R = {}
def reg(name):
    def d(c):
        R[name] = c
        return c
    return d
@reg('d')
class D:
    def get(self): return base.batch(32)
model.fit(R['d']().get())
""",
    "dispatch if": """
def a(): return base.batch(32)
def b(): return base.batch(64)
f = {'a': a, 'b': b}['a']
model.fit(f())
""",
    "ternary fn": """
f = (lambda: base.batch(32)) if True else None
model.fit(f())
""",
    "main guard": """
def main():
    ds = base.batch(32)
    model.fit(ds)
if __name__ == '__main__':
    main()
""",
    "sys exit main": """
import sys
def main():
    model.fit(base.batch(32))
    return 0
if __name__ == '__main__':
    sys.exit(main())
""",
    "global fn": """
DS = None
def setup():
    global DS
    DS = base.batch(32)
def run():
    model.fit(DS)
setup()
run()
""",
    "walrus ds": """
if (ds := base.batch(32)) is not None:
    model.fit(ds)
""",
    "typer": """
import typer
def main(n: int = 32): model.fit(base.batch(n))
if __name__ == '__main__': typer.run(main)
""",
    "fire": """
import fire
def main(n=32): model.fit(base.batch(n))
if __name__ == '__main__': fire.Fire(main)
""",
}
#: Programs that train on more: the stages, one that a branch may skip ends in ``?``.
STAGES = {
    "transform star": (
        """
def compose(*fs):
    def g(ds):
        for f in fs:
            ds = f(ds)
        return ds
    return g
model.fit(compose(lambda d: d.cache(), lambda d: d.batch(32))(base))
""",
        "from_tensor_slices cache batch",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline_is_followed(read: Read, name: str) -> None:
    program = read(PROGRAMS[name])

    assert ["from_tensor_slices", "batch"] in trained(program)
    assert 32 in sizes(program)


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_is_followed(read: Read, name: str) -> None:
    text, stages = STAGES[name]

    assert stages.split() in trained(read(text))
