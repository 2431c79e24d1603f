"""Statements: ``with``, ``async``, unpacking, annotations, deletion."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, sizes, trained

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "async fn": """
import asyncio
async def get(): return base.batch(32)
async def main():
    ds = await get()
    model.fit(ds)
asyncio.run(main())
""",
    "async with": """
import asyncio, contextlib
@contextlib.asynccontextmanager
async def get(): yield base.batch(32)
async def main():
    async with get() as ds:
        model.fit(ds)
asyncio.run(main())
""",
    "async for": """
import asyncio
async def get():
    yield base.batch(32)
async def main():
    async for ds in get():
        model.fit(ds)
asyncio.run(main())
""",
    "gather": """
import asyncio
async def get(): return base.batch(32)
async def main():
    a, b = await asyncio.gather(get(), get())
    model.fit(a)
asyncio.run(main())
""",
    "annassign": """
ds: tf.data.Dataset = base.batch(32)
model.fit(ds)
""",
    "chain assign": """
a = b = base.batch(32)
model.fit(b)
""",
    "swap": """
a, b = base, base.batch(32)
a, b = b, a
model.fit(a)
""",
    "starred": """
a, *b = base.batch(32), 1, 2
model.fit(a)
""",
    "nested unpack": """
(a, (b, c)) = (1, (base.batch(32), 2))
model.fit(b)
""",
    "augassign n": """
n = 16
n *= 2
model.fit(base.batch(n))
""",
    "ctx mgr cls": """
class S:
    def __enter__(self): return base.batch(32)
    def __exit__(self, *a): pass
with S() as ds:
    model.fit(ds)
""",
    "exitstack": """
import contextlib
with contextlib.ExitStack() as st:
    st.enter_context(tf.device('/GPU:0'))
    model.fit(base.batch(32))
""",
    "nullcontext": """
import contextlib
with contextlib.nullcontext(base.batch(32)) as ds:
    model.fit(ds)
""",
    "with scope": """
s = tf.distribute.MirroredStrategy()
with s.scope():
    model.fit(base.batch(32))
""",
    "del rebind": """
ds = base
del ds
ds = base.batch(32)
model.fit(ds)
""",
    "globals": """
def mk(): return base.batch(32)
model.fit(globals()['mk']())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline_is_followed(read: Read, name: str) -> None:
    program = read(PROGRAMS[name])

    assert ["from_tensor_slices", "batch"] in trained(program)
    assert 32 in sizes(program)
