from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, line_of, named
from tests.checks.snippets import FIT, SETUP, STEP

RULE = "strategy-scope-missing"
MADE = SETUP.replace("\nds =", "\nstrategy = tf.distribute.MirroredStrategy()\nds =", 1)
SCOPED = MADE.replace("model = tf", "with strategy.scope():\n    model = tf").replace(
    "optimizer = tf", "    optimizer = tf"
)


def test_stands_at_the_model(analyse: Analyse) -> None:
    text = MADE + FIT
    (finding,) = named(analyse(text), RULE)

    assert finding.location.line == line_of(text, "Sequential")
    assert finding.related[0].location.line == line_of(text, "MirroredStrategy")


def test_compiling_inside_does_not_help_a_model_built_outside(analyse: Analyse) -> None:
    text = MADE + 'with strategy.scope():\n    model.compile("adam", "mse")\n' + FIT.splitlines()[1] + "\n"
    assert len(named(analyse(text), RULE)) == 1


def test_stands_at_the_call_of_a_helper_in_another_module(analyse: Analyse) -> None:
    models = "import tensorflow as tf\ndef build():\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    models += '    model.compile("adam", "mse")\n    return model\n'
    train = (
        "import tensorflow as tf\nimport models\n"
        "def main():\n    strategy = tf.distribute.MirroredStrategy()\n    model = models.build()\n"
        "    model.fit(tf.zeros([4096, 8]), tf.zeros([4096, 1]), batch_size=256 * strategy.num_replicas_in_sync)\n"
        "main()\n"
    )
    (finding,) = named(analyse({"models.py": models, "train.py": train}), RULE)
    assert (finding.location.path, finding.location.line) == ("train.py", 5)


def test_helper_that_is_defined_before_the_strategy_is_made(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "def build():\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "    model.compile('adam', 'mse')\n    return model\n"
        "strategy = tf.distribute.MirroredStrategy()\n{}model = build()\n"
        "model.fit(tf.zeros([4096, 8]), tf.zeros([4096, 1]), batch_size=512 * strategy.num_replicas_in_sync)\n"
    )
    (finding,) = named(analyse(text.format("")), RULE)
    assert finding.location.line == 7
    assert named(analyse(text.format("with strategy.scope():\n    ")), RULE) == []


def test_a_step_that_no_strategy_runs(analyse: Analyse) -> None:
    text = SCOPED + "@tf.function\n" + STEP + "for x, y in ds:\n    train_step(x, y)\n"
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "GradientTape")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("in scope", SCOPED + FIT),
        ("run by the strategy", SCOPED + STEP + "@tf.function\ndef both(x, y):\n"
         "    return strategy.run(train_step, args=(x, y))\n"
         "for x, y in strategy.experimental_distribute_dataset(ds):\n    both(x, y)\n"),
        ("one device", MADE.replace("MirroredStrategy()", "OneDeviceStrategy('/gpu:0')") + FIT),
        ("default strategy", MADE.replace("MirroredStrategy()", "get_strategy()") + FIT),
        ("set for the whole program", MADE + "tf.distribute.experimental_set_strategy(strategy)\n" + FIT),
        ("never trained", MADE + "model.predict(tf.zeros([4096, 8]), batch_size=256)\n"),
        ("chosen at run time", MADE.replace("strategy = tf", "if unheard_of():\n    strategy = tf") + FIT),
        ("one model of two", SCOPED + FIT + MADE.splitlines()[6] + "\n" + FIT),
    ],
)  # fmt: skip
def test_silent(analyse: Analyse, what: str, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_silent_where_the_strategy_lives_in_another_script(analyse: Analyse) -> None:
    assert named(analyse({"one.py": SETUP + FIT, "many.py": SCOPED + FIT}), RULE) == []
