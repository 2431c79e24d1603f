"""Loops: tables of transformations, splits built in comprehensions, lists that grow."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, ops, plain, sizes, trained

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "name that a comprehension leaves": """
[ds := base.batch(32) for _ in (1,)]
model.fit(ds)
""",
    "splits dict": """
S = {k: base.batch(32) for k in ('train', 'val')}
model.fit(S['train'], validation_data=S['val'])
""",
    "splits loop": """
S = {}
for k in ['train', 'val']:
    S[k] = base.batch(32)
model.fit(S['train'])
""",
    "splits list": """
a, b = [base.batch(n) for n in (32, 64)]
model.fit(a)
""",
    "splits gen": """
a, b = (base.batch(n) for n in (32, 64))
model.fit(a)
""",
    "splits map": """
a, b = map(lambda d: d.batch(32), (base, base))
model.fit(a)
""",
    "while true": """
it = 0
while True:
    model.fit(base.batch(32))
    it += 1
    if it > 3: break
""",
    "sorted comp": """
L = sorted([32, 64])
model.fit(base.batch(L[0]))
""",
}
#: Programs that train on more: the stages, one that a branch may skip ends in ``?``.
STAGES = {
    "transform table": (
        """
T = [lambda d: d.shuffle(10), lambda d: d.batch(32)]
ds = base
for t in T:
    ds = t(ds)
model.fit(ds)
""",
        "from_tensor_slices shuffle batch",
    ),
    "transform table names": (
        """
T = [('shuffle', (10,)), ('batch', (32,))]
ds = base
for n, a in T:
    ds = getattr(ds, n)(*a)
model.fit(ds)
""",
        "from_tensor_slices shuffle batch",
    ),
    "transform dict": (
        """
T = {'a': lambda d: d.cache(), 'b': lambda d: d.batch(32)}
ds = base
for k in T:
    ds = T[k](ds)
model.fit(ds)
""",
        "from_tensor_slices cache batch",
    ),
    "transform dict items": (
        """
T = {'a': lambda d: d.cache(), 'b': lambda d: d.batch(32)}
ds = base
for k, f in T.items():
    ds = f(ds)
model.fit(ds)
""",
        "from_tensor_slices cache batch",
    ),
    "transform enum": (
        """
T = [lambda d: d.cache(), lambda d: d.batch(32)]
ds = base
for i, f in enumerate(T):
    ds = f(ds)
model.fit(ds)
""",
        "from_tensor_slices cache batch",
    ),
    "transform map fns": (
        """
F = [lambda x, y: (x, y), lambda x, y: (x*2, y)]
ds = base
for f in F:
    ds = ds.map(f)
model.fit(ds.batch(32))
""",
        "from_tensor_slices map map batch",
    ),
    "splits dict fn": (
        """
def make(split):
    ds = base
    if split == 'train':
        ds = ds.shuffle(10)
    return ds.batch(32)
S = {k: make(k) for k in ['train', 'val']}
model.fit(S['train'])
""",
        "from_tensor_slices shuffle batch",
    ),
    "comp concat": (
        """
L = [base for f in ['a','b']]
ds = L[0]
for d in L[1:]:
    ds = ds.concatenate(d)
model.fit(ds.batch(32))
""",
        "from_tensor_slices concatenate batch",
    ),
    "zip ds": (
        """
ds = tf.data.Dataset.zip((base, base))
model.fit(ds.batch(32))
""",
        "zip batch",
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


def test_list_that_grows_in_a_loop_of_unknown_length_is_not_complete(read: Read) -> None:
    for grow in ("layers.append({})", "layers += [{}]", "layers = layers + [{}]", "layers.extend([{}])"):
        program = read(
            f"""
import sys
layers = [tf.keras.layers.Dense(8)]
for _ in range(len(sys.argv)):
    {grow.format("tf.keras.layers.Dense(8)")}
net = tf.keras.Sequential(layers)
"""
        )

        assert not program.models[-1].complete, grow


def test_comprehension_over_a_short_list_gives_every_element(read: Read) -> None:
    program = read("net = tf.keras.Sequential([tf.keras.layers.Dense(n) for n in (8, 4, 2)])\n")

    assert [plain(layer.argument("units")) for layer in program.models[-1].layers] == [8, 4, 2]
    assert program.models[-1].complete


def test_loop_knows_how_often_it_runs(read: Read) -> None:
    program = read(
        """
for a in range(10): pass
for b in range(2, 20, 3): pass
for c in [1, 2, 3]: pass
for d in enumerate(["a", "b"]): pass
for e in unheard_of: pass
while unheard_of: pass
"""
    )

    assert [(loop.kind, loop.count) for loop in program.loops] == [
        ("for", 10),
        ("for", 6),
        ("for", 3),
        ("for", 2),
        ("for", None),
        ("while", None),
    ]


def test_loop_holds_the_calls_of_its_body(read: Read) -> None:
    program = read("def show(x):\n    print(x)\nfor x in base:\n    show(x)\nprint('after')\n")
    (loop,) = program.loops

    assert [call.callee for call in loop.calls] == ["train:show", "builtins.print"]


def test_counter_is_no_constant_in_the_loop_that_changes_it(read: Read) -> None:
    program = read("n = 32\nfor x in unheard_of:\n    model.fit(base.batch(n))\n    n += 1\n")

    assert sizes(program) == [None]


def test_one_of_many_functions_stands_for_nothing(read: Read) -> None:
    table = ", ".join(["lambda d: d.take(9)"] * 9)
    program = read(f"ds = base\nfor f in [{table}]:\n    ds = f(ds)\nmodel.fit(ds.batch(32))\n")

    assert trained(program) == [[]]


def test_tqdm_and_enumerate_leave_the_dataset_visible(read: Read) -> None:
    for iterable in (
        "tqdm.tqdm(ds)",
        "enumerate(ds)",
        "enumerate(tqdm.tqdm(ds), 1)",
        "zip(ds, range(9))",
        "iter(ds)",
    ):
        program = read(f"import tqdm\nds = base.batch(32)\nfor x in {iterable}:\n    print(x)\n")

        assert [ops(pipeline) for pipeline in program.pipelines] == [["from_tensor_slices", "batch"]], iterable
