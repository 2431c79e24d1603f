"""Branches: conditions that the text settles, and those that it leaves open."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, sizes, trained

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "early return none": """
def f(ds):
    if ds is None:
        return None
    return ds.batch(32)
model.fit(f(base))
""",
    "and or": """
def f(ds, size=None):
    size = size or 32
    return ds.batch(size)
model.fit(f(base))
""",
    "walrus": """
if (n := 32) > 16:
    model.fit(base.batch(n))
""",
    "match str": """
mode = 'train'
match mode:
    case 'train' | 'fit':
        ds = base.batch(32)
    case _:
        ds = base.batch(64)
model.fit(ds)
""",
    "match tuple": """
cfg = ('train', 32)
match cfg:
    case ('train', n):
        ds = base.batch(n)
    case _:
        ds = base.batch(64)
model.fit(ds)
""",
    "match dict": """
match {'n': 32}:
    case {'n': n}:
        model.fit(base.batch(n))
""",
    "try finally": """
try:
    ds = base.batch(32)
finally:
    pass
model.fit(ds)
""",
}
#: Programs that train on more: the stages, one that a branch may skip ends in ``?``.
STAGES = {
    "if training": (
        """
def f(ds, training):
    if training:
        ds = ds.shuffle(10)
    ds = ds.batch(32)
    return ds
model.fit(f(base, True), validation_data=f(base, False))
""",
        "from_tensor_slices shuffle batch",
    ),
    "if training default": (
        """
def f(ds, training=True):
    if training:
        ds = ds.shuffle(10)
    return ds.batch(32)
model.fit(f(base))
""",
        "from_tensor_slices shuffle batch",
    ),
    "if training unknown": (
        """
import sys
def f(ds, training):
    if training:
        ds = ds.shuffle(10)
    return ds.batch(32)
model.fit(f(base, len(sys.argv) > 1))
""",
        "from_tensor_slices shuffle? batch",
    ),
    "ternary": (
        """
import sys
ds = base.shuffle(10) if sys.argv else base
model.fit(ds.batch(32))
""",
        "from_tensor_slices shuffle? batch",
    ),
    "early return": (
        """
def f(ds, training):
    if not training:
        return ds.batch(32)
    return ds.shuffle(10).batch(32)
model.fit(f(base, True))
""",
        "from_tensor_slices shuffle batch",
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


def test_both_arms_of_an_open_branch_are_joined(read: Read) -> None:
    program = read(
        """
import sys
ds = base
for_real = len(sys.argv) > 1
if for_real:
    ds = ds.shuffle(10)
if len(sys.argv) > 2:
    ds = ds.cache()
model.fit(ds.batch(32))
"""
    )

    assert trained(program) == [["from_tensor_slices", "shuffle?", "cache?", "batch"]]


def test_two_pipelines_of_two_arms_are_alternatives(read: Read) -> None:
    program = read(
        """
import sys
if sys.argv:
    ds = base.batch(32)
else:
    ds = tf.data.Dataset.range(10)
model.fit(ds)
"""
    )

    assert sorted(trained(program)) == [["from_tensor_slices", "batch"], ["range"]]


@pytest.mark.parametrize(
    ("test", "kind", "every"),
    [
        ("step % 100 == 0", "periodic", 100),
        ("not step % 10", "periodic", 10),
        ("args_debug", "debug", None),
        ("unheard_of", "branch", None),
    ],
)
def test_guard_says_what_kind_of_branch_it_is(read: Read, test: str, kind: str, every: int | None) -> None:
    program = read(
        "import sys\nargs_debug = 'debug' in sys.argv\n"
        f"for step, x in enumerate(base):\n    if {test}:\n        print(x)\n"
    )
    (call,) = program.calls_to("builtins.print")
    (guard,) = call.context.guards

    assert (guard.kind, guard.every) == (kind, every)


def test_arm_that_cannot_run_is_not_read(read: Read) -> None:
    program = read("import tensorflow as tf\nif False:\n    print('never')\nelse:\n    print('always')\n")

    assert [call.constant("x", 0) for call in program.calls_to("builtins.print")] == ["always"]


def test_unknown_alternative_keeps_what_is_known_of_the_other(read: Read) -> None:
    program = read(
        """
import sys
from elsewhere import load
ds = load() if sys.argv else base.batch(32)
model.fit(ds)
"""
    )

    assert trained(program) == [["from_tensor_slices", "batch"]]


def test_case_with_a_guard_may_be_passed_over(read: Read) -> None:
    program = read(
        """
import sys
match "train":
    case "train" if sys.argv:
        ds = base.shuffle(10)
    case _:
        ds = base
model.fit(ds.batch(32))
"""
    )

    assert trained(program) == [["from_tensor_slices", "shuffle?", "batch"]]
