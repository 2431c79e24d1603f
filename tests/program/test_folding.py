"""Constants are folded; what grows without bound, or fails in Python, is unknown."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, plain, sizes
from tflint_gpu.program.values import Operation

HEADER = "import math\nimport numpy as np\nn = 8\nsizes = (8, 32)\nnested = {'a': [1, {'b': 32}]}\n"


@pytest.mark.parametrize(
    "expression",
    [
        "2**5",
        "n * 4",
        "int(64 / 2)",
        "64 // 2",
        "1 << 5",
        "0x20",
        "-(-32)",
        "+32",
        "int('32')",
        "sizes[1]",
        "sizes[-1]",
        "sizes[::-1][0]",
        "nested['a'][1]['b']",
        "min(32, 64)",
        "max(sizes)",
        "sum([16, 16])",
        "len('a' 'b') * 16",
        "len(sizes) * 16",
        "pow(2, 5)",
        "abs(-32)",
        "round(31.9)",
        "math.ceil(31.5)",
        "math.floor(32.5)",
        "math.prod([4, 8])",
        "np.int64(32)",
        "int(np.ceil(31.2))",
        "32 if 3 > 2 else 4",
        "32 if 'a' in ('a', 'b') else 4",
        "(n == 8) * 32",
        "None or 32",
        "n and 32",
        "{'a': 1} | {'a': 32} and 32",
        "[*sizes][1]",
        "(lambda size: size * 2)(16)",
        "dict(a=32)['a']",
        "'a,b'.replace(',', '') == 'ab' and 32",
    ],
)
def test_expression_folds(read: Read, expression: str) -> None:
    assert sizes(read(f"{HEADER}model.fit(base.batch({expression}))")) == [32]


@pytest.mark.parametrize(
    "expression",
    [
        "10 ** 10**9",
        "1 << 10**12",
        "'a' * 10**12",
        "'%1000000000d' % 3",
        "f'{3:>1000000000}'",
        "[0] * 10**12",
        "1 / 0",
        "int('x')",
        "sizes[7]",
        "'a' + 1",
        "math.ceil(float('inf'))",
        "math.ceil('a')",
        "elsewhere()",
        "n + unheard_of",
    ],
)
def test_what_python_would_not_like_is_unknown(read: Read, expression: str) -> None:
    assert sizes(read(f"{HEADER}model.fit(base.batch({expression}))")) == [None]


def test_texts_that_double_are_not_kept(read: Read) -> None:
    program = read("a = 'ab'\n" + "a = a + a\n" * 60 + "b = f'{a}{a}'\nprint('x', a, b)\n")
    (call,) = program.calls_to("builtins.print")

    assert plain(call.args[0]) == "x"
    assert [plain(argument) for argument in call.args[1:]] == [None, None]


def test_replicas_times_a_number_stay_an_operation(read: Read) -> None:
    program = read(
        """
strategy = tf.distribute.MirroredStrategy()
model.fit(base.batch(64 * strategy.num_replicas_in_sync))
"""
    )
    size = program.pipelines[0].stages[-1].call.argument("batch_size")

    assert isinstance(size, Operation) and size.operator == "*"
    assert plain(size.operands[0]) == 64
