"""What the rules' fixes make of programs, and what they leave alone with which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.conftest import Analyse
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.fixes import apply_fixes, edits_of

Fixed = Callable[..., str]

HEAD = "import numpy as np\nimport tensorflow as tf\n\n"
DATA = "ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 64]), tf.zeros([4096, 1])))\n"
MODEL = (
    "model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(512), tf.keras.layers.Dense(1)])\n"
)
FIT = 'model.compile("adam", "mse")\nmodel.fit(ds, epochs=3)\n'
BATCH = "ds = ds.batch(256).prefetch(tf.data.AUTOTUNE)\n"
ARGUMENT = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int, default={})\n"
)


@pytest.fixture
def fixed(analyse: Analyse, tmp_path: Path) -> Fixed:
    """Return a function (rule, text) -> the text with all fixes of that rule, or why the first was not made.

    Fixing the result again changes nothing.
    """

    def fix(rule: str, text: str, tensorflow: str = "2.15") -> str:
        code = next(page.code for page in all_pages() if page.name == rule)
        major, minor = map(int, tensorflow.split("."))

        def lint(contents: dict[str, bytes]) -> list[object]:
            return list(analyse({name: raw.decode() for name, raw in contents.items()}, tensorflow))

        def once(given: str) -> tuple[str, str]:
            findings = [finding for finding in analyse(given, tensorflow) if finding.code == code]
            assert findings, "the rule finds nothing"
            done = apply_fixes(
                findings,
                lambda path: given.encode() if path == "train.py" else None,
                lint,  # type: ignore[arg-type]
                tensorflow=(major, minor),
                unsafe=True,
            )
            reasons = [refusal.reason for refusal in done.declined]
            if not done.changed and not reasons:
                _, reason = edits_of(findings[0], lambda _: given.encode(), (major, minor))
                reasons = [reason]
            return (done.changed[0].after.decode() if done.changed else given), reasons[0] if reasons else ""

        after, reason = once(text)
        if after == text:
            return reason
        left = [finding for finding in analyse(after, tensorflow) if finding.code == code]
        assert not left or once(after)[0] == after
        return after

    return fix


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        pytest.param(
            "missing-prefetch",
            DATA + "ds = ds.shuffle(10).prefetch(4).batch(256)\n" + MODEL + FIT,
            DATA + "ds = ds.shuffle(10).batch(256).prefetch(tf.data.AUTOTUNE)\n" + MODEL + FIT,
            id="a prefetch moves to the end",
        ),
        pytest.param(
            "run-eagerly-enabled",
            DATA + BATCH + MODEL + 'model.compile("adam", "mse", run_eagerly=True)\nmodel.fit(ds)\n',
            DATA + BATCH + MODEL + 'model.compile("adam", "mse")\nmodel.fit(ds)\n',
            id="run_eagerly",
        ),
        pytest.param(
            "run-eagerly-enabled",
            "tf.config.run_functions_eagerly(True)\n" + DATA + BATCH + MODEL + FIT,
            DATA + BATCH + MODEL + FIT,
            id="run_functions_eagerly",
        ),
        pytest.param(
            "tfdata-tuning-disabled",
            DATA + "ds = ds.batch(256).prefetch(0)\n" + MODEL + FIT,
            DATA + BATCH + MODEL + FIT,
            id="prefetch(0)",
        ),
        pytest.param(
            "legacy-input-api",
            DATA
            + "ds = ds.apply(tf.data.experimental.map_and_batch(lambda x, y: (x, y), 256, drop_remainder=True))\n"
            + "ds = ds.prefetch(1)\n"
            + MODEL
            + FIT,
            DATA
            + "ds = ds.map(\n    lambda x, y: (x, y),\n    num_parallel_calls=tf.data.AUTOTUNE,\n)"
            + ".batch(256, drop_remainder=True)\nds = ds.prefetch(1)\n"
            + MODEL
            + FIT,
            id="map_and_batch",
        ),
        pytest.param(
            "legacy-input-api",
            DATA
            + "ds = ds.apply(tf.data.experimental.shuffle_and_repeat(100, 2)).batch(256).prefetch(1)\n"
            + MODEL
            + FIT,
            DATA + "ds = ds.shuffle(100).repeat(2).batch(256).prefetch(1)\n" + MODEL + FIT,
            id="shuffle_and_repeat",
        ),
        pytest.param(
            "memory-growth-setup",
            'gpus = tf.config.list_physical_devices("GPU")\n'
            "tf.config.experimental.set_memory_growth(gpus[0], True)\n" + DATA + BATCH + MODEL + FIT,
            'gpus = tf.config.list_physical_devices("GPU")\n'
            "for gpu in gpus:\n    tf.config.experimental.set_memory_growth(gpu, True)\n"
            + DATA
            + BATCH
            + MODEL
            + FIT,
            id="growth for all",
        ),
        pytest.param(
            "replica-batch-starved",
            "strategy = tf.distribute.MirroredStrategy()\n"
            + DATA
            + "ds = ds.batch(16)\nwith strategy.scope():\n    "
            + MODEL
            + '    model.compile("adam", "mse")\nmodel.fit(ds, epochs=3)\n',
            "strategy = tf.distribute.MirroredStrategy()\n"
            + DATA
            + "ds = ds.batch(16 * strategy.num_replicas_in_sync)\nwith strategy.scope():\n    "
            + MODEL
            + '    model.compile("adam", "mse")\nmodel.fit(ds, epochs=3)\n',
            id="num_replicas_in_sync",
        ),
        pytest.param(
            "strategy-scope-missing",
            "strategy = tf.distribute.MirroredStrategy()\n" + DATA + BATCH + MODEL + FIT,
            "strategy = tf.distribute.MirroredStrategy()\n"
            + DATA
            + BATCH
            + "with strategy.scope():\n    "
            + MODEL
            + '    model.compile("adam", "mse")\nmodel.fit(ds, epochs=3)\n',
            id="strategy.scope()",
        ),
        pytest.param(
            "generator-over-arrays",
            "x, y = np.zeros([4096, 64]), np.zeros([4096, 1])\n"
            "ds = tf.data.Dataset.from_generator(lambda: zip(x, y), output_types=(tf.float32, tf.float32))\n"
            "ds = ds.batch(256).prefetch(1)\n" + MODEL + FIT,
            "x, y = np.zeros([4096, 64]), np.zeros([4096, 1])\n"
            "ds = tf.data.Dataset.from_tensor_slices((x, y))\n"
            "ds = ds.batch(256).prefetch(1)\n" + MODEL + FIT,
            id="from_tensor_slices",
        ),
        pytest.param(
            "debug-instrumentation-on",
            "tf.debugging.enable_check_numerics()\n" + DATA + BATCH + MODEL + FIT,
            DATA + BATCH + MODEL + FIT,
            id="enable_check_numerics",
        ),
        pytest.param(
            "float64-compute",
            'tf.keras.backend.set_floatx("float64")\n' + DATA + BATCH + MODEL + FIT,
            DATA + BATCH + MODEL + FIT,
            id="set_floatx",
        ),
    ],
)
def test_fixed(rule: str, before: str, after: str, fixed: Fixed) -> None:
    assert fixed(rule, HEAD + before) == HEAD + after


@pytest.mark.parametrize(
    ("rule", "text", "reason"),
    [
        pytest.param(
            "run-eagerly-enabled",
            DATA
            + BATCH
            + MODEL
            + 'EAGER = True\nmodel.compile("adam", "mse", run_eagerly=EAGER)\nmodel.fit(ds)\n',
            "the value of run_eagerly comes from elsewhere",
            id="a variable",
        ),
        pytest.param(
            "run-eagerly-enabled",
            "def loss(y, p):\n    print(p)\n    return tf.reduce_mean(y - p)\n\n"
            + DATA
            + BATCH
            + MODEL
            + 'model.compile("adam", loss, run_eagerly=True)\nmodel.fit(ds)\n',
            "line 5 needs Python: print()",
            id="a loss that prints",
        ),
        pytest.param(
            "run-eagerly-enabled",
            "if len(os.environ) > 3:\n    tf.config.run_functions_eagerly(True)\n    print()\n"
            + DATA
            + BATCH
            + MODEL
            + FIT,
            "a branch decides",
            id="a branch",
        ),
        pytest.param(
            "run-eagerly-enabled",
            "# until #12 is solved\ntf.config.run_functions_eagerly(True)\n" + DATA + BATCH + MODEL + FIT,
            "a comment says why",
            id="a comment",
        ),
        pytest.param(
            "legacy-input-api",
            DATA
            + "both = tf.data.experimental.map_and_batch(lambda x, y: (x, y), 256)\nds = ds.apply(both)\n"
            + MODEL
            + FIT,
            "not applied where it is made",
            id="a transformation with a name",
        ),
        pytest.param(
            "replica-batch-starved",
            ARGUMENT.format(16)
            + "args = parser.parse_args()\nstrategy = tf.distribute.MirroredStrategy()\n"
            + DATA
            + "ds = ds.batch(args.n)\nwith strategy.scope():\n    "
            + MODEL
            + '    model.compile("adam", "mse")\nmodel.fit(ds, epochs=3)\n',
            "a default that the user may override",
            id="a setting",
        ),
        pytest.param(
            "memory-growth-setup",
            "x = tf.zeros([3])\n"
            'for gpu in tf.config.list_physical_devices("GPU"):\n'
            "    # all\n"
            "    tf.config.experimental.set_memory_growth(gpu, bool(x))\n",
            "it reads x, which is made in between",
            id="growth that needs a tensor",
        ),
        pytest.param(
            "strategy-scope-missing",
            "strategy = tf.distribute.MirroredStrategy()\n"
            + DATA
            + BATCH
            + MODEL
            + "if True:\n    strategy = strategy or None\n"
            + FIT,
            "strategy is set in several places",
            id="two strategies",
        ),
        pytest.param(
            "generator-over-arrays",
            "x = np.zeros([4096, 64])\n"
            "def rows():\n    for row in x:\n        yield row / 255.0, 1.0\n\n"
            "ds = tf.data.Dataset.from_generator(rows, output_types=(tf.float32, tf.float32))\n"
            "ds = ds.batch(256).prefetch(1)\n" + MODEL + FIT,
            "does more than walk over arrays",
            id="a generator that scales",
        ),
    ],
)
def test_left_alone(rule: str, text: str, reason: str, fixed: Fixed) -> None:
    assert reason in fixed(rule, HEAD + text)


def test_one_policy_for_all_models_of_a_program(fixed: Fixed) -> None:
    layers = ", ".join(f"tf.keras.layers.Conv2D({width}, 3)" for width in (64, 128, 256))
    one = "a = tf.keras.Sequential([tf.keras.Input([64, 64, 3]), " + layers + ", tf.keras.layers.Dense(1)])\n"
    fit = 'a.compile("adam", "mse")\na.fit(tf.zeros([64, 64, 64, 3]), tf.zeros([64, 1]))\n'
    text = HEAD + one + fit + (one + fit).replace("a.", "b.").replace("a = ", "b = ")

    after = fixed("mixed-precision-off", text)
    assert after.count("set_global_policy") == 1
    assert after.count('tf.keras.layers.Dense(1, dtype="float32")') == 2
    assert after.index("set_global_policy") < after.index("a = ")
