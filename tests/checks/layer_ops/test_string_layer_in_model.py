"""What the page of string-layer-in-model does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Placement, Spot

NAME = "string-layer-in-model"
HEAD = (
    "import numpy as np\nimport tensorflow as tf\n\nwords = np.array([['red'], ['blue']] * 500)\n"
    "price = np.random.rand(1000)\n"
)
FUNCTIONAL = HEAD + (
    "inputs = tf.keras.Input((1,), dtype='string')\n"
    "look = tf.keras.layers.StringLookup(vocabulary=['red', 'blue'])\n"
    "rows = tf.keras.layers.Embedding(3, 8)(look(inputs))\n"
    "model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(rows)))\n"
)
FIT = "model.compile('adam', 'mse')\nmodel.fit(words, price, batch_size=100)\n"


def test_layer_of_a_functional_model_is_found_where_it_is_applied(analyse: Analyse) -> None:
    (found,) = named(analyse(FUNCTIONAL + FIT), NAME)
    assert found.location.line == 8


def test_model_that_is_never_trained_is_fine(analyse: Analyse) -> None:
    assert named(analyse(FUNCTIONAL + "model.predict(words)\n"), NAME) == []


def test_wrapper_for_export_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "ids = np.random.randint(0, 3, (1000, 1))\n"
        "model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Embedding(3, 8), "
        "tf.keras.layers.Flatten()])\n"
        "model.compile('adam', 'mse')\nmodel.fit(ids, price, batch_size=100)\n"
        "raw = tf.keras.Input((1,), dtype='string')\n"
        "clean = tf.keras.layers.StringLookup(vocabulary=['red', 'blue'])(tf.strings.lower(raw))\n"
        "tf.keras.Model(raw, model(clean)).export('served')\n"
    )
    assert named(analyse(text), NAME) == []


def test_preprocessing_model_in_the_pipeline_is_fine(analyse: Analyse) -> None:
    text = FUNCTIONAL.replace("model = ", "_ = ") + (
        "prepare = tf.keras.Model(inputs, look(inputs))\n"
        "ds = tf.data.Dataset.from_tensor_slices((words, price)).batch(100)\n"
        "ds = ds.map(lambda w, p: (prepare(w), p), num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)\n"
        "model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Embedding(3, 8), "
        "tf.keras.layers.Flatten()])\n"
        "model.compile('adam', 'mse')\nmodel.fit(ds)\n"
    )
    assert named(analyse(text), NAME) == []


def test_layer_in_the_forward_pass_of_a_subclass(analyse: Analyse) -> None:
    text = HEAD + (
        "class Net(tf.keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.look = tf.keras.layers.StringLookup(vocabulary=['red', 'blue'])\n"
        "        self.rows = tf.keras.layers.Embedding(3, 8)\n"
        "    def call(self, x):\n"
        "        return self.rows(self.look(x))\n"
        "model = Net()\n" + FIT
    )
    (found,) = named(analyse(text), NAME)
    assert found.location.line == 12


def test_string_function_in_a_step_and_in_a_map(analyse: Analyse) -> None:
    text = HEAD + (
        "def loss(y, p):\n    tf.strings.length(tf.as_string(y))\n    return tf.reduce_mean(p)\n\n"
        "model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', loss)\nmodel.fit(np.zeros((1000, 8)), price, batch_size=100)\n"
    )
    assert {f.location.line for f in named(analyse(text), NAME)} == {7}
    mapped = HEAD + (
        "ds = tf.data.Dataset.from_tensor_slices((words, price)).batch(100)\n"
        "ds = ds.map(lambda w, p: (tf.strings.length(w), p), num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)\n"
        "model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(ds)\n"
    )
    assert named(analyse(mapped), NAME) == []


def test_judge_finds_the_ops_that_keras_replays(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    # Layers of a functional model are traced from fit's line, not from where they were applied.
    found = Placement("LookupTableFindV2", 1, "cpu", predicted=True, spot=Spot("train.py", 30), ms=2.0)
    finding = finding_at(check, 8, ops=("LookupTableFindV2",), replayed=True)
    judged = check.judge(finding, evidence_of(10.0, placements=(found,)))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == 0.2
    assert judged.message is not None
    assert "predicted" in judged.message
    assert check.judge(finding, evidence_of(10.0)) is None


def test_layer_of_a_sequential_model_is_found_where_it_enters(analyse: Analyse) -> None:
    made = HEAD + "look = tf.keras.layers.StringLookup(vocabulary=['red', 'blue'])\n"
    listed = made + (
        "model = tf.keras.Sequential([\n    tf.keras.Input((1,), dtype='string'),\n    look,\n"
        "    tf.keras.layers.Embedding(3, 8),\n    tf.keras.layers.Flatten(),\n])\n"
    )
    assert [f.location.line for f in named(analyse(listed + FIT), NAME)] == [9]
    added = made + (
        "model = tf.keras.Sequential()\nmodel.add(tf.keras.Input((1,), dtype='string'))\nmodel.add(look)\n"
        "model.add(tf.keras.layers.Embedding(3, 8))\nmodel.add(tf.keras.layers.Flatten())\n"
    )
    assert [f.location.line for f in named(analyse(added + FIT), NAME)] == [9]


def test_tokenizer_of_no_trained_model_prepares_input(analyse: Analyse) -> None:
    layer = (
        "class {name}(tf.keras.layers.Layer):\n"
        "    def call(self, text):\n        return tf.strings.regex_replace(text, 'x', '')\n\n"
    )
    fitted = FUNCTIONAL.replace("look(inputs)", "inputs").replace(", dtype='string'", "") + FIT
    assert named(analyse(fitted + layer.format(name="WordTokenizer")), NAME) == []
    assert len(named(analyse(fitted + layer.format(name="Cleaner")), NAME)) == 1
