"""What the page of forced-cpu-placement does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Placement, Spot

NAME = "forced-cpu-placement"
HEAD = "import numpy as np\nimport tensorflow as tf\n\nx = np.zeros((4096, 64), 'float32')\n"


def test_fit_in_the_block(analyse: Analyse) -> None:
    text = HEAD + (
        "model = tf.keras.Sequential([tf.keras.layers.Dense(4096), tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\n"
        "with tf.device('cpu'):\n"
        "    model.fit(x, x[:, :1], batch_size=512)\n"
    )
    assert [f.location.line for f in named(analyse(text), NAME)] == [7]


def test_evaluation_in_the_block_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(x, x[:, :1], batch_size=512)\n"
        "with tf.device('/device:CPU:0'):\n    model.evaluate(x, x[:, :1], batch_size=512)\n"
    )
    assert named(analyse(text), NAME) == []


def test_augmentation_made_in_the_block_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "with tf.device('/CPU:0'):\n"
        "    flip = tf.keras.Sequential([tf.keras.layers.RandomFlip('horizontal')])\n"
        "    ds = tf.data.Dataset.from_tensor_slices((np.zeros((512, 64, 64, 3), 'float32'), np.zeros(512)))\n"
        "    ds = ds.batch(64).map(lambda a, b: (flip(a), b), num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)\n"
        "model = tf.keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)\n"
        "model.compile('adam', 'sparse_categorical_crossentropy')\nmodel.fit(ds)\n"
    )
    assert named(analyse(text), NAME) == []


def test_block_inside_the_loss(analyse: Analyse) -> None:
    text = HEAD + (
        "def loss(y, p):\n    with tf.device('/cpu:0'):\n"
        "        return tf.reduce_mean(tf.linalg.svd(y - p)[0])\n\n"
        "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(1)])\n"
        "model.compile('adam', loss)\nmodel.fit(x, x[:, :1], batch_size=512)\n"
    )
    assert [f.location.line for f in named(analyse(text), NAME)] == [6]


def test_block_around_a_gradient_step(analyse: Analyse) -> None:
    text = HEAD + (
        "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(1)])\n"
        "opt = tf.keras.optimizers.Adam()\n\n"
        "@tf.function\ndef step(batch):\n"
        "    with tf.device('/CPU:0'):\n"
        "        with tf.GradientTape() as tape:\n            loss = tf.reduce_mean(model(batch))\n"
        "        grads = tape.gradient(loss, model.trainable_variables)\n"
        "        opt.apply_gradients(zip(grads, model.trainable_variables))\n\n"
        "for batch in tf.data.Dataset.from_tensor_slices(x).batch(512).prefetch(2):\n    step(batch)\n"
    )
    assert [f.location.line for f in named(analyse(text), NAME)] == [10]


def test_block_that_gathers_what_blocks_of_gpus_computed_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "w = tf.Variable(tf.zeros((64, 1)))\nopt = tf.keras.optimizers.SGD()\n\n"
        "def step(x):\n"
        "    gradients = []\n"
        "    with tf.device('/cpu:0'):\n"
        "        for i in range(2):\n"
        "            with tf.device('/gpu:%i' % i), tf.GradientTape() as tape:\n"
        "                loss = tf.reduce_mean(tf.matmul(x[i::2], w))\n"
        "            gradients.append(tape.gradient(loss, w))\n"
        "        opt.apply_gradients([(tf.add_n(gradients), w)])\n\n"
        "for batch in tf.data.Dataset.from_tensor_slices(x).batch(512):\n    step(batch)\n"
    )
    assert named(analyse(text), NAME) == []


def test_judge_needs_a_gpu(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    ran = Placement("MatMul", 4, "cpu", predicted=False, spot=Spot("train.py", 5), ms=6.0)
    assert check.judge(finding_at(check, 5), evidence_of(10.0, placements=(ran,))) is None
    judged = check.judge(finding_at(check, 5), evidence_of(10.0, gpu=True, placements=(ran,)))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
