"""Spelling AUTOTUNE with the names that a file has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fixes.conftest import PREFETCH

Fixed = Callable[..., str]
CALL = "ds.batch(2)"


def spelled(text: str, fixed: Fixed, tensorflow: tuple[int, int] = (2, 15)) -> str:
    """Return what stands inside ``prefetch(…)`` after the fix, or why there is none."""
    result = fixed(text, CALL, PREFETCH, tensorflow)
    head, appended, tail = result.partition(".prefetch(")
    return tail.partition(")")[0] if appended else head


@pytest.mark.parametrize(
    ("head", "spelling"),
    [
        ("import tensorflow as tf", "tf.data.AUTOTUNE"),
        ("import tensorflow", "tensorflow.data.AUTOTUNE"),
        ("import tensorflow.keras", "tensorflow.data.AUTOTUNE"),
        ("import tensorflow.compat.v2 as tf2", "tf2.data.AUTOTUNE"),
        ("from tensorflow import data as tfd", "tfd.AUTOTUNE"),
        ("import tensorflow.data as tfd", "tfd.AUTOTUNE"),
        ("from tensorflow.data import AUTOTUNE", "AUTOTUNE"),
        ("from tensorflow.data import AUTOTUNE as A", "A"),
        ("import tensorflow as tf\nAUTO = tf.data.AUTOTUNE", "AUTO"),
        ("import tensorflow as tf\nAUTO = tf.data.experimental.AUTOTUNE", "AUTO"),
        ("import tensorflow as tf\nAUTO = 4", "tf.data.AUTOTUNE"),
        ("import tensorflow as tf\nAUTO = tf.data.AUTOTUNE\nAUTO = 4", "tf.data.AUTOTUNE"),
        (
            "try:\n    import tensorflow.compat.v2 as tf\nexcept ImportError:\n    import tensorflow as tf",
            "tf.data.AUTOTUNE",
        ),
    ],
)
def test_names_in_use(head: str, spelling: str, fixed: Fixed) -> None:
    assert spelled(f"{head}\nds = {CALL}\n", fixed) == spelling


def test_versions_before_2_4_have_only_the_experimental_one(fixed: Fixed) -> None:
    text = f"import tensorflow as tf\nds = {CALL}\n"
    assert spelled(text, fixed, (2, 3)) == "tf.data.experimental.AUTOTUNE"
    assert spelled(text, fixed, (2, 4)) == "tf.data.AUTOTUNE"
    from_data = f"from tensorflow import data\nds = {CALL}\n"
    assert spelled(from_data, fixed, (2, 3)) == "data.experimental.AUTOTUNE"


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (f"import tensorflow as tf\ndef f(tf):\n    return {CALL}\n", "tensorflow.data.AUTOTUNE"),
        (f"def g():\n    import tensorflow as tf\ndef f():\n    return {CALL}\n", "tf.data.AUTOTUNE"),
        (f"def f():\n    import tensorflow as tf\n    return {CALL}\n", "tf.data.AUTOTUNE"),
        (f"def f():\n    return {CALL}\nimport tensorflow as tf\n", "tf.data.AUTOTUNE"),
        (f"class C:\n    import tensorflow as tf\ndef f():\n    return {CALL}\n", "tf.data.AUTOTUNE"),
        (
            f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tensorflow as tf\nds = {CALL}\n",
            "tensorflow.data.AUTOTUNE",
        ),
    ],
    ids=[
        "a parameter of that name",
        "imported in another function",
        "imported in this function",
        "imported below the function",
        "a class body is no scope for others",
        "imported for annotations alone",
    ],
)
def test_names_out_of_reach(text: str, spelling: str, fixed: Fixed) -> None:
    assert spelled(text, fixed) == spelling


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from tensorflow.keras import layers\n",
            "import tensorflow as tf\nfrom tensorflow.keras import layers\n",
        ),
        (
            '"""Doc."""\n\nimport os\nimport sys\n\n',
            '"""Doc."""\n\nimport os\nimport sys\nimport tensorflow as tf\n\n',
        ),
        ('"""Doc."""\nx = 1\n', '"""Doc."""\nimport tensorflow as tf\nx = 1\n'),
        (
            "#!/usr/bin/python\nfrom __future__ import annotations\n",
            "#!/usr/bin/python\nfrom __future__ import annotations\nimport tensorflow as tf\n",
        ),
        (
            "from keras import (\n    layers,\n)\n",
            "from keras import (\n    layers,\n)\nimport tensorflow as tf\n",
        ),
    ],
    ids=[
        "beside TensorFlow's own",
        "behind the last",
        "behind the docstring",
        "behind the future",
        "several lines",
    ],
)
def test_an_import_is_added(before: str, after: str, fixed: Fixed) -> None:
    text = f"{before}ds = {CALL}\n"
    assert fixed(text, CALL, PREFETCH) == f"{after}ds = {CALL}.prefetch(tf.data.AUTOTUNE)\n"
    crlf = fixed(text.replace("\n", "\r\n"), CALL, PREFETCH)
    assert crlf == f"{after}ds = {CALL}.prefetch(tf.data.AUTOTUNE)\n".replace("\n", "\r\n")


def test_no_free_name_no_fix(fixed: Fixed) -> None:
    text = f"tf = tensorflow = None\nds = {CALL}\n"
    assert spelled(text, fixed) == "the names tf and tensorflow mean something else in this file"


def test_no_import_between_a_decorator_and_its_function(fixed: Fixed) -> None:
    text = f"@cached\ndef f():\n    return {CALL}\n"
    assert fixed(text, CALL, PREFETCH).startswith("import tensorflow as tf\n@cached\ndef f():\n")


def test_an_import_stands_in_front_of_its_use(fixed: Fixed) -> None:
    text = f"import os; ds = {CALL}\n"
    assert fixed(text, CALL, PREFETCH) == f"import tensorflow as tf\n{text.rstrip()}.prefetch(tf.data.AUTOTUNE)\n"


def test_settings_between_the_imports_stay_in_front(fixed: Fixed) -> None:
    text = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nfrom keras import layers\nds = {CALL}\n"
    assert fixed(text, CALL, PREFETCH) == (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nfrom keras import layers\n"
        f"import tensorflow as tf\nds = {CALL}.prefetch(tf.data.AUTOTUNE)\n"
    )


def test_a_file_that_imports_late_goes_on_so(fixed: Fixed) -> None:
    late = "def g():\n    import tensorflow as tf\n"
    head = "class C:\n\tdef f(self):\n\t\t'Doc.'\n"
    assert fixed(f"{late}{head}\t\treturn {CALL}\n", CALL, PREFETCH) == (
        f"{late}{head}\t\timport tensorflow as tf\n\t\treturn {CALL}.prefetch(tf.data.AUTOTUNE)\n"
    )


LAYER = {"kind": "append-method", "method": "map", "argument": "{keras.layers.Dense}"}


@pytest.mark.parametrize(
    ("head", "spelling"),
    [
        ("import tensorflow as tf", "tf.keras.layers.Dense"),
        ("import tensorflow as tf\nfrom tensorflow import keras", "keras.layers.Dense"),
        ("import tensorflow as tf\nfrom tensorflow.keras import layers as L", "L.Dense"),
        ("import tensorflow as tf\nfrom tensorflow.keras.layers import Dense", "Dense"),
        ("import tensorflow as tf\nkeras = tf.keras", "keras.layers.Dense"),
        ("import keras", "keras.layers.Dense"),
        ("import tensorflow as tf\nimport keras", "keras.layers.Dense"),
        ("import tf_keras as keras", "keras.layers.Dense"),
    ],
)
def test_a_file_keeps_its_keras(head: str, spelling: str, fixed: Fixed) -> None:
    assert fixed(f"{head}\nds = {CALL}\n", CALL, LAYER) == f"{head}\nds = {CALL}.map({spelling})\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            "from tensorflow.keras.models import Sequential\n",
            "from tensorflow import keras\nfrom tensorflow.keras.models import Sequential\n",
        ),
        ("from keras.models import Sequential\n", "from keras.models import Sequential\nimport keras\n"),
        ("import os\n", "import os\nfrom tensorflow import keras\n"),
    ],
)
def test_an_import_of_keras_is_of_the_same_one(head: str, expected: str, fixed: Fixed) -> None:
    assert fixed(f"{head}ds = {CALL}\n", CALL, LAYER) == f"{expected}ds = {CALL}.map(keras.layers.Dense)\n"


def test_two_kinds_of_keras_are_not_mixed(fixed: Fixed) -> None:
    text = f"import keras\nimport tensorflow as tf\nm = tf.keras.Model()\nds = {CALL}\n"
    assert fixed(text, CALL, LAYER, (2, 12)) == (
        "the file uses keras and tensorflow.keras, which keep their settings apart"
    )
    assert fixed(text, CALL, LAYER, (2, 16)).endswith(".map(keras.layers.Dense)\n")


def test_a_file_without_any_import_gets_one_on_top(fixed: Fixed) -> None:
    assert fixed(f"ds = {CALL}\n", CALL, PREFETCH) == (
        f"import tensorflow as tf\nds = {CALL}.prefetch(tf.data.AUTOTUNE)\n"
    )
