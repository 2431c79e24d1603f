"""Edits that move whole statements: in and out of blocks, up, and into loops."""

from __future__ import annotations

import pytest

from tests.fixes.kinds.conftest import Edited

_NEEDED = "the rest of the program may need what it does; guard it by hand"
_SHARED = "the statement shares its line with another; part them"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "s = ¦M()¦\n\n# the model\n«a = f(\n    1,\n)»\n\nb = '''\nx\n'''\n# done\n‹c(a)›\nd()\n",
            "s = M()\n\n# the model\nwith s.scope():\n    a = f(\n        1,\n    )\n\n    b = '''\nx\n'''\n"
            "    # done\n    c(a)\nd()\n",
            id="module",
        ),
        pytest.param(
            "def f():\n    s = ¦M()¦\n    «a = 1»\n    if x:\n        ‹c(a)›\n    return a\n",
            "def f():\n    s = M()\n    with s.scope():\n        a = 1\n        if x:\n            c(a)\n"
            "    return a\n",
            id="the end stands deeper",
        ),
    ],
)
def test_put_under(text: str, after: str, edited: Edited) -> None:
    assert edited("put-under", text, head="with @.scope():") == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s = ¦M()¦\n«a()»; ‹b()›\n", _SHARED),
        ("s = ¦M()¦\nif x:\n    «a()»\nelse:\n    ‹b()›\n", "the statements do not stand in one block"),
        ("t.s = ¦M()¦\n«a()»\n‹b()›\n", "what is made there has no name of its own"),
    ],
)
def test_not_put_under(text: str, reason: str, edited: Edited) -> None:
    assert edited("put-under", text, head="with @.scope():") == reason


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "a()\n«with d('/cpu:0'):»\n    b(\n        1)\n\n    # c\n    c = '''\n    x'''\nd()\n",
            "a()\nb(\n    1)\n\n# c\nc = '''\n    x'''\nd()\n",
            id="module",
        ),
        pytest.param(
            "def f():\n    «with d(\n        '/cpu:0'\n    ):»\n        @g\n        def h():\n            pass\n",
            "def f():\n    @g\n    def h():\n        pass\n",
            id="in a function, a head of three lines",
        ),
    ],
)
def test_taken_out(text: str, after: str, edited: Edited) -> None:
    assert edited("take-out-of-block", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("«with d('/cpu:0')»: b()\n", "the block shares a line with its head"),
        (
            "«with d('/cpu:0'):»  # on purpose\n    b()\n",
            "a comment speaks of the block; read it, then remove both",
        ),
        (
            "# on purpose\n«with d('/cpu:0'):»\n    b()\n",
            "a comment speaks of the block; read it, then remove both",
        ),
        ("«with d('/cpu:0') as e:»\n    b(e)\n", "no plain with block stands there"),
        ("«with d('/cpu:0'), e:»\n    b()\n", "no plain with block stands there"),
    ],
)
def test_not_taken_out(text: str, reason: str, edited: Edited) -> None:
    assert edited("take-out-of-block", text) == reason


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "‹for x in y:›\n    s = «t.function(f)»\n    s(x)\n",
            "s = t.function(f)\nfor x in y:\n    s(x)\n",
            id="call",
        ),
        pytest.param(
            "def g(y):\n    # all\n    ‹for x in y:›\n        «@t.function»\n        def s(x):\n"
            "            return h(x)\n\n"
            "        s(x)\n",
            "def g(y):\n    # all\n    @t.function\n    def s(x):\n        return h(x)\n"
            "    for x in y:\n\n        s(x)\n",
            id="decorated",
        ),
        pytest.param(
            "‹while a:›\n    b()\n    s = «t.function(\n        f,\n    )»",
            "s = t.function(\n    f,\n)\nwhile a:\n    b()\n",
            id="while, no line end",
        ),
    ],
)
def test_hoisted(text: str, after: str, edited: Edited) -> None:
    assert edited("hoist", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("‹for x in y:›\n    s = «t.function(x)»\n    s()\n", "it reads x, which the loop sets anew"),
        (
            "‹for x in y:›\n    m = n()\n    «@t»\n    def s(x):\n        return m(x)\n    s(x)\n",
            "it reads m, which the loop sets anew",
        ),
        ("‹for x in y:›\n    m.a = x\n    s = «t(m)»\n    s()\n", "it reads m, which the loop sets anew"),
        ("‹for x in y:›\n    s = «t(f)»\n    s = s or x\n", "the loop sets s in another place too"),
        ("‹while s:›\n    s = «t(f)»\n    b()\n", "the head of the loop reads what it makes"),
        (
            "‹for x in y:›\n    if x:\n        s = «t(f)»\n",
            "it does not stand in the loop itself; move it by hand",
        ),
        ("‹for x in y:›\n    s = «t(f)»\n", "the loop would be left empty"),
        (
            "‹for x in y:›\n    # new\n    s = «t(f)»\n    s(x)\n",
            "a comment speaks of it; read it, then move both",
        ),
        ("‹for x in y:›\n    s = «t(f)»; s(x)\n    b()\n", _SHARED),
    ],
)
def test_not_hoisted(text: str, reason: str, edited: Edited) -> None:
    assert edited("hoist", text) == reason


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("x = ‹a()›\nb()\n«g(1)»\nc()\n", "g(1)\nx = a()\nb()\nc()\n", id="alone"),
        pytest.param(
            "x = ‹a()›\nl = f()\nb()\nfor i in l:\n    «g(i)»\n",
            "l = f()\nfor i in l:\n    g(i)\nx = a()\nb()\n",
            id="with what it loops over",
        ),
        pytest.param(
            "x = ‹a()›\nl = f()\nif l:\n    «g(l)»", "l = f()\nif l:\n    g(l)\nx = a()\n", id="a branch"
        ),
    ],
)
def test_moved(text: str, after: str, edited: Edited) -> None:
    assert edited("move-before", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = ‹a()›\n«g(x)»\n", "it reads x, which is made in between"),
        ("x = ‹a()›\nfor l in m:\n    pass\n«g(l)»\n", "it reads l, which is made in between"),
        ("x = ‹a()›\nb(i)\nfor i in l:\n    «g(i)»\n", "what stands in between uses a name that it sets"),
        ("x = ‹a()›\n# all\n«g(1)»\n", "a comment speaks of it; read it, then move both"),
        ("x = ‹a()›; b()\n«g(1)»\n", _SHARED),
        ("if x:\n    ‹a()›\n«g(1)»\n", "the two do not stand in one block"),
    ],
)
def test_not_moved(text: str, reason: str, edited: Edited) -> None:
    assert edited("move-before", text) == reason


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param(
            "‹for i, x in enumerate(d):›\n    a(x)\n    «print(x)»  # seen\n",
            "for i, x in enumerate(d):\n    a(x)\n    if i % 100 == 0:\n        print(x)  # seen\n",
            id="enumerate",
        ),
        pytest.param(
            "‹for i in range(9):›\n    «print(\n        'a\\\n    b', i)»",
            "for i in range(9):\n    if i % 100 == 0:\n        print(\n            'a\\\n    b', i)",
            id="range, a string of two lines",
        ),
        pytest.param(
            "‹for _ in range(9):›\n    «print(x)»\n",
            "for step in range(9):\n    if step % 100 == 0:\n        print(x)\n",
            id="an index that nobody reads",
        ),
        pytest.param(
            "‹for _i, x in tqdm(enumerate(d, 1), total=9):›\n    «print(x)»\n",
            "for step, x in tqdm(enumerate(d, 1), total=9):\n    if step % 100 == 0:\n        print(x)\n",
            id="behind a progress bar",
        ),
        pytest.param(
            "step = 0\n‹for x in d.take(9):›\n    «print(x)»\n",
            "step = 0\nfor batch_number, x in enumerate(d.take(9)):\n"
            "    if batch_number % 100 == 0:\n        print(x)\n",
            id="a loop over a dataset, the name is taken",
        ),
        pytest.param(
            "‹for x, (y, z) in tqdm(  # all\n    d,\n):›\n    «print(x)»\n",
            "for step, (x, (y, z)) in enumerate(tqdm(  # all\n    d,\n)):\n"
            "    if step % 100 == 0:\n        print(x)\n",
            id="pairs",
        ),
        pytest.param(
            "‹for (x, y) in (d):›\n    «print(x)»\n",
            "for step, (x, y) in (enumerate(d)):\n    if step % 100 == 0:\n        print(x)\n",
            id="parentheses",
        ),
    ],
)
def test_every_nth_round(text: str, after: str, edited: Edited) -> None:
    assert edited("every-nth-round", text, rounds="100") == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("‹for x in a, b:›\n    «print(x)»\n", "the loop counts no rounds; draw from enumerate() first"),
        ("‹while True:›\n    «print(x)»\n", "the loop counts no rounds; count them first"),
        (
            "‹for i in range(0, 9, 2):›\n    «print(x)»\n",
            "what the loop draws counts in a way of its own; guard it by hand",
        ),
        (
            "‹for pair in enumerate(d):›\n    «print(pair)»\n",
            "what the loop draws counts in a way of its own; guard it by hand",
        ),
        (
            "‹for i in range(9):›\n    v = «float(x)»\n",
            "the rest of the program may need what it does; guard it by hand",
        ),
        (
            "‹for i in range(9):›\n    if a:\n        «f(x)»\n",
            "it does not stand in the loop itself; guard it by hand",
        ),
        ("‹for i in range(9):›\n    a(); «print(x)»\n", _SHARED),
        (
            "t = _('a')\n‹for _ in range(9):›\n    «print(x)»\n",
            "_ has another meaning elsewhere; name the loop's index first",
        ),
        ("‹for i in range(9):›\n    «print(step(x))»\n", _NEEDED),
        (
            "step = batch_number = round_number = loop_round = 0\n‹for x in d:›\n    «print(x)»\n",
            "the names step, batch_number, round_number, loop_round are taken",
        ),
        ("‹for i in range(9):›\n    «losses.append(x.numpy())»\n", _NEEDED),
    ],
)
def test_not_every_nth_round(text: str, reason: str, edited: Edited) -> None:
    assert edited("every-nth-round", text, rounds="100") == reason


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("«s(g[0], True)»\n", "for gpu in g:\n    s(gpu, True)\n", id="a name"),
        pytest.param(
            "gpu = 1\nif x:\n    «s(f('GPU')[0])»\n",
            "gpu = 1\nif x:\n    for device in f('GPU'):\n        s(device)\n",
            id="a call, the name is taken",
        ),
    ],
)
def test_loop_over(text: str, after: str, edited: Edited) -> None:
    assert edited("loop-over", text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("«s(g)»\n", "the first of all is not picked here"),
        ("«s(g[1])»\n", "the first of all is not picked here"),
        ("x = «s(g[0])»\n", "the first of all is not picked here"),
        ("a(); «s(g[0])»\n", _SHARED),
        (
            "gpu = device = each_gpu = each_device = this_gpu = 0\n«s(g[0])»\n",
            "the names gpu, device, each_gpu, each_device, this_gpu are taken",
        ),
    ],
)
def test_no_loop_over(text: str, reason: str, edited: Edited) -> None:
    assert edited("loop-over", text) == reason
