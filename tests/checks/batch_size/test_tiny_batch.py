"""TFG201: batches that are small for the model, and batches that are small for a reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import WhatIf

PROGRAM = """
import argparse
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=4)
args = parser.parse_args()
images, classes = np.zeros((4096, 64, 64, 3), "float32"), np.zeros(4096)
rows, prices = np.zeros((4096, 20), "float32"), np.zeros(4096, "float32")

vision = keras.Sequential([
    keras.Input((64, 64, 3)), layers.Conv2D(64, 3), layers.GlobalAveragePooling2D(), layers.Dense(10)
])
dense = keras.Sequential([keras.Input((20,)), layers.Dense(512, "relu"), layers.Dense(1)])
small = keras.Sequential([keras.Input((20,)), layers.Dense(32, "relu"), layers.Dense(1)])
unet = keras.Sequential([keras.Input((8, 8, 3)), layers.Conv2D(8, 3), layers.UpSampling2D(), layers.Conv2D(1, 1)])
large = keras.Sequential([
    keras.Input((512, 512, 3)), layers.Conv2D(64, 3), layers.GlobalAveragePooling2D(), layers.Dense(10)
])
volumes = keras.Sequential([keras.Input((64, 64, 64, 1)), layers.Conv3D(8, 3), layers.Flatten(), layers.Dense(2)])
for net in (vision, dense, small, unet, large, volumes):
    net.compile("adam", "mse")
ds = tf.data.Dataset.from_tensor_slices((images, classes)).shuffle(64)
"""


def found(analyse: Analyse, rest: str) -> list[Finding]:
    return analyse(PROGRAM + rest, None, ("tiny-batch",))


@pytest.mark.parametrize(
    "rest",
    [
        "vision.fit(images, classes, batch_size=8, epochs=3)",
        "vision.fit(ds.batch(4).prefetch(2), epochs=3)",
        "vision.fit(tf.keras.utils.image_dataset_from_directory('d', batch_size=4), epochs=3)",
        "dense.fit(rows, prices, batch_size=16, epochs=3)",
        "keras.applications.ResNet50(weights=None).fit(images, classes, batch_size=2)",
    ],
)
def test_small_for_a_plain_net(analyse: Analyse, rest: str) -> None:
    assert [finding.severity for finding in found(analyse, rest)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("unet.fit(images, images, batch_size=4)", id="segmentation"),
        pytest.param("large.fit(images, classes, batch_size=4)", id="large images"),
        pytest.param("volumes.fit(images, classes, batch_size=2)", id="3-D"),
        pytest.param("keras.models.load_model('m').fit(images, classes, batch_size=2)", id="unknown model"),
        pytest.param("vision.fit(images, classes, batch_size=args.batch)", id="default of the command line"),
        pytest.param("small.fit(rows, prices, epochs=3)", id="default of Keras on a small net"),
        pytest.param("import house\ndense.fit(house.data(), batch_size=4)", id="unknown data"),
        pytest.param(
            "def batches(batch_size):\n    yield images[:batch_size], classes[:batch_size]\n\n"
            "vision.fit(batches(4), steps_per_epoch=64)",
            id="generator told its batch",
        ),
        pytest.param(
            "class Photos(keras.utils.PyDataset):\n    def __init__(self, batch_size):\n"
            "        super().__init__()\n        self.batch_size = batch_size\n\n"
            "vision.fit(Photos(batch_size=4))",
            id="PyDataset told its batch",
        ),
    ],
)
def test_info_only(analyse: Analyse, rest: str) -> None:
    assert [finding.severity for finding in found(analyse, rest)] == [Severity.INFO]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("vision.fit(images, classes, batch_size=64)", id="large enough"),
        pytest.param("vision.evaluate(images, classes, batch_size=4)", id="evaluation"),
        pytest.param("vision.fit(ds.batch(64), validation_data=ds.batch(4), epochs=3)", id="validation"),
        pytest.param("dense.fit(rows, prices, epochs=3)", id="default of Keras on a wide net"),
        pytest.param(
            "small.fit(np.array([[1.0], [2.0], [3.0]]), np.array([1, 2, 3]), batch_size=1)", id="toy data"
        ),
        pytest.param("small.fit(np.random.random((10, 20)), np.zeros(10), batch_size=5)", id="ten rows"),
        pytest.param(
            "small.fit(np.transpose(np.array([[1, 2], [3, 4]])), np.zeros(2), batch_size=1)", id="spelled out"
        ),
        pytest.param(
            "x = np.array([range(10), range(10)]).T\nsmall.fit(x[:7], x[:7], batch_size=1)", id="counted"
        ),
        pytest.param("for row in rows:\n    dense.fit(row[None], row[:1], epochs=1)", id="single samples"),
        pytest.param("import house\ndense.fit(house.data(), batch_size=house.size())", id="unknown size"),
        pytest.param("vision.fit(ds.batch(4).unbatch(), epochs=3)", id="unbatched again"),
        pytest.param(
            "import gymnasium\nenv = gymnasium.make('CartPole-v1')\nwhile True:\n    env.step(0)\n"
            "    dense.fit(rows[:4], prices[:4], batch_size=4)",
            id="reinforcement learning",
        ),
        pytest.param(
            "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n"
            "    shared = keras.Sequential([keras.Input((20,)), layers.Dense(512)])\n"
            "    shared.compile('adam', 'mse')\n"
            "shared.fit(rows, prices, batch_size=8)",
            id="the global batch of a strategy",
        ),
    ],
)
def test_is_silent_on(analyse: Analyse, rest: str) -> None:
    assert found(analyse, rest) == []


def test_gradients_that_add_up_over_batches(analyse: Analyse) -> None:
    loop = (
        "optimizer = keras.optimizers.Adam()\n"
        "total = [tf.Variable(tf.zeros_like(v)) for v in vision.trainable_variables]\n"
        "@tf.function\ndef add(x, y):\n    with tf.GradientTape() as tape:\n"
        "        loss = tf.reduce_mean(vision(x, training=True) - y)\n"
        "    for t, g in zip(total, tape.gradient(loss, vision.trainable_variables)):\n        t.assign_add(g)\n"
        "@tf.function\ndef apply():\n    optimizer.apply_gradients(zip(total, vision.trainable_variables))\n"
        "for i, (x, y) in enumerate(ds.batch(4).prefetch(2)):\n    add(x, y)\n{}"
    )
    assert found(analyse, loop.format("    if (i + 1) % 16 == 0:\n        apply()\n")) == []
    assert len(found(analyse, loop.format("    apply()\n"))) == 1


def test_finding_stands_where_the_size_is_set(analyse: Analyse) -> None:
    rest = "small_batches = ds.batch(2)\nvision.fit(small_batches, epochs=3)"

    (finding,) = found(analyse, rest)
    assert finding.location.line == line_of(PROGRAM + rest, r"ds\.batch")


def larger(speedup: float) -> WhatIf:
    return WhatIf("batch-x4", 10.0 / speedup, 10.0, speedup, 3, 0.02, speedup - 0.02, speedup + 0.02)


@pytest.mark.parametrize(
    ("speedup", "verdict"), [(3.0, Verdict.CONFIRMED), (1.1, Verdict.MINOR), (1.0, Verdict.REFUTED)]
)
def test_larger_batches_judge(rule: Callable[[str], Check], speedup: float, verdict: Verdict) -> None:
    check = rule("tiny-batch")

    judged = check.judge(finding_at(check, 9), evidence_of(gpu=True, what_if=(larger(speedup),)))

    assert judged is not None
    assert judged.verdict is verdict


def test_busy_gpu_has_work_enough(rule: Callable[[str], Check]) -> None:
    check = rule("tiny-batch")
    evidence = evidence_of(gpu=True, buckets={"device_compute": 9.0}, what_if=(larger(3.0),))

    judged = check.judge(finding_at(check, 9), evidence)

    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_cpu_refutes_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("tiny-batch")

    judged = check.judge(finding_at(check, 9), evidence_of(what_if=(larger(1.0),)))

    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED


def test_no_experiment_says_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("tiny-batch")

    assert check.judge(finding_at(check, 9), evidence_of()) is None


def test_a_list_that_holds_itself_is_no_illustration(analyse: Analyse) -> None:
    findings = found(analyse, "x = [1.0]\nx.append(x)\nsmall.fit(np.array(x), np.zeros(64), batch_size=4)")
    assert len(findings) <= 1
