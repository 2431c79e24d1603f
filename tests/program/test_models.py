"""Models: which layers they have, and whether that is all of them."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read
from tflint_gpu.program.views import Model

START = "import tensorflow as tf\nfrom tensorflow.keras import layers\n"


def built(read: Read, text: str) -> Model:
    return read({"train.py": START + text}, head=False).models[-1]


def names(model: Model) -> list[str]:
    return [layer.callee.rpartition(".")[2] for layer in model.layers]


@pytest.mark.parametrize(
    "text",
    [
        "tf.keras.Sequential([layers.Dense(8), layers.LSTM(4)])",
        "m = tf.keras.Sequential()\nm.add(layers.Dense(8))\nm.add(layers.LSTM(4))",
        "parts = [layers.Dense(8)]\nparts.append(layers.LSTM(4))\ntf.keras.Sequential(parts)",
        "tf.keras.Sequential([tf.keras.Input([4]), *[layers.Dense(8), layers.LSTM(4)]])",
        "inner = tf.keras.Sequential([layers.Dense(8)])\ntf.keras.Sequential([inner, layers.LSTM(4)])",
        "a = tf.keras.Input([4])\nb = layers.Dense(8)(a)\nc = layers.LSTM(4)(b)\ntf.keras.Model(a, c)",
        (
            "a = tf.keras.Input([4])\nx = a\nfor layer in (layers.Dense(8), layers.LSTM(4)):\n    x = layer(x)\n"
            "tf.keras.Model(inputs=a, outputs=x)"
        ),
        (
            "def block(x):\n    return layers.LSTM(4)(layers.Dense(8)(x))\na = tf.keras.Input([4])\n"
            "tf.keras.Model(a, [block(a)])"
        ),
        "a = tf.keras.Input([4])\nx = tf.nn.relu(layers.Dense(8)(a)) + 1\ntf.keras.Model(a, layers.LSTM(4)(x))",
        "a = tf.keras.Input([4])\ntf.keras.Model(a, {'out': layers.LSTM(4)(layers.Dense(8)(a))})",
        (
            "class N(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
            "        self.a = layers.Dense(8)\n        self.b = [layers.LSTM(4)]\n"
            "    def call(self, x):\n        return self.b[0](self.a(x))\nN()"
        ),
        (
            "class N(tf.keras.Model):\n    def __init__(self):\n        a = tf.keras.Input([4])\n"
            "        super().__init__(inputs=a, outputs=layers.LSTM(4)(layers.Dense(8)(a)))\nN()"
        ),
    ],
)
def test_layers_of_a_model(read: Read, text: str) -> None:
    model = built(read, text)

    assert sorted(names(model)) == ["Dense", "LSTM"]
    assert model.complete


@pytest.mark.parametrize(
    "text",
    [
        "a = tf.keras.Input([4])\ntf.keras.Model(a, layers.Dense(8)(base(a)))",
        "tf.keras.Model(base.input, layers.Dense(8)(base.output))",
        "tf.keras.Sequential([base, layers.Dense(8)])",
        (
            "class N(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
            "        self.base = base\n        self.b = layers.Dense(8)\n"
            "    def call(self, x):\n        return self.b(self.base(x))\nN()"
        ),
    ],
)
def test_a_network_of_keras_is_a_layer_of_what_is_built_on_it(read: Read, text: str) -> None:
    program = read({"train.py": START + "base = tf.keras.applications.ResNet50()\n" + text}, head=False)
    model = next(model for model in program.models if model.kind != "application")

    assert sorted(names(model)) == ["Dense", "ResNet50"]
    assert not model.complete


@pytest.mark.parametrize(
    "text",
    [
        "m = tf.keras.Sequential([layers.Dense(8), unheard_of()])",
        "m = tf.keras.Sequential(unheard_of())",
        "m = tf.keras.Sequential([layers.Dense(8)] + unheard_of())",
        "a = tf.keras.Input([4])\nm = tf.keras.Model(a, unheard_of(layers.Dense(8)(a)))",
        "m = tf.keras.Sequential([layers.Dense(8), *(layers.Dense(8) for _ in unheard_of())])",
        "import tensorflow_hub as hub\nm = tf.keras.Sequential([layers.Dense(8), Own()])",
        "m = tf.keras.models.load_model('m')",
        "m = tf.keras.applications.ResNet50()",
    ],
)
def test_model_of_which_a_part_is_unknown_is_not_complete(read: Read, text: str) -> None:
    assert not built(read, text).complete


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tf.keras.Sequential()", "sequential"),
        ("a = tf.keras.Input([4])\ntf.keras.Model(a, a)", "functional"),
        ("class N(tf.keras.Model): pass\nN()", "subclass"),
        ("class N(tf.keras.Model): pass\nclass O(N): pass\nO()", "subclass"),
        ("tf.keras.applications.ResNet50()", "application"),
        ("tf.keras.models.load_model('m')", "loaded"),
    ],
)
def test_kind_of_a_model(read: Read, text: str, kind: str) -> None:
    assert built(read, text).kind == kind


def test_compiles_and_calls_belong_to_their_model(read: Read) -> None:
    model = built(
        read,
        """
class N(tf.keras.Model):
    def call(self, x):
        return tf.nn.relu(x)

def make():
    net = N()
    net.compile("adam", jit_compile=False)
    return net

make()(tf.zeros([2, 2]))
""",
    )

    assert [call.constant("jit_compile") for call in model.compiles] == [False]
    assert "tf.nn.relu" in [call.callee for call in model.calls]


def test_layer_of_the_project_is_followed_when_it_is_applied(read: Read) -> None:
    program = read(
        """
class Own(tf.keras.layers.Layer):
    def build(self, shape):
        self.inner = tf.keras.layers.Dense(8)
    def call(self, x):
        return tf.where(x > 0, x, self.inner(x))

a = tf.keras.Input([4])
tf.keras.Model(a, Own()(a)).fit(base.batch(32))
"""
    )

    assert [call.context.region for call in program.calls_to("tf.where")] == ["model"]


@pytest.mark.parametrize(
    "end",
    ["base.output", "base.get_layer('top').output", "base.layers[-2].output", "base.outputs[0]", "base.input"],
)
def test_the_ends_of_a_network_are_symbolic(read: Read, end: str) -> None:
    text = START + f"base = tf.keras.applications.ResNet50()\ny = tf.nn.relu({end})\n"
    (call,) = read({"train.py": text}, head=False).calls_to("tf.nn.relu")

    assert call.context.region == "model"


@pytest.mark.parametrize(
    ("made", "model"),
    [
        ("keras_hub.models.BertTextClassifier.from_preset('b', num_classes=2)", True),
        ("keras_hub.models.BertTextClassifier(backbone, 2)", True),
        ("keras_nlp.models.BertClassifier.from_preset('b', num_classes=2)", True),
        ("keras_cv.models.YOLOV8Detector(num_classes=2)", True),
        ("keras_hub.models.BertTextClassifierPreprocessor.from_preset('b')", False),
        ("keras_hub.models.BertTokenizer.from_preset('b')", False),
        ("keras_hub.models.BertPreprocessor(tokenizer)", False),
        ("keras_hub.layers.ImageConverter.from_preset('b')", False),
    ],
)
def test_models_of_keras_hubs(read: Read, made: str, model: bool) -> None:
    module = made.partition(".")[0]
    program = read({"train.py": f"import {module}\nmade = {made}\n"})

    names = [found.call.callee for found in program.models if found.call is not None]
    assert (made.partition("(")[0] in names) is model
