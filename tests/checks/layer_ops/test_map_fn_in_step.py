"""What the page of map-fn-in-step does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import Kernels, Placement, Spot

NAME = "map-fn-in-step"
HEAD = "import numpy as np\nimport tensorflow as tf\n\n"
TRAIN = (
    "model = tf.keras.Sequential([tf.keras.Input((64,)), Part(), tf.keras.layers.Dense(1)])\n"
    "model.compile('adam', 'mse')\nmodel.fit(np.zeros((4096, 64), 'float32'), np.zeros(4096), batch_size=512)\n"
)


def layer(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{HEAD}class Part(tf.keras.layers.Layer):\n    def call(self, x):\n{lines}\n{TRAIN}"


def told(analyse: Analyse, body: str) -> list[tuple[int, Severity]]:
    return [(f.location.line, f.severity) for f in named(analyse(layer(body)), NAME)]


def test_comprehension_over_slices(analyse: Analyse) -> None:
    assert told(analyse, "return tf.stack([tf.nn.softmax(x[i]) for i in range(512)])") == [(6, Severity.WARNING)]


def test_statement_over_slices_may_be_a_recurrence(analyse: Analyse) -> None:
    body = "parts = []\nfor t in range(64):\n    parts.append(tf.nn.relu(x[:, t]))\nreturn tf.stack(parts, axis=1)"
    assert told(analyse, body) == [(7, Severity.INFO)]


def test_channel_behind_an_ellipsis(analyse: Analyse) -> None:
    body = "total = 0.0\nfor c in range(21):\n    total += tf.reduce_sum(x[..., c])\nreturn x + total"
    assert told(analyse, body) == [(7, Severity.INFO)]


def test_few_rounds_are_no_loop(analyse: Analyse) -> None:
    assert told(analyse, "return tf.stack([tf.nn.softmax(x[:, i]) for i in range(4)])") == []


def test_scan_is_info(analyse: Analyse) -> None:
    assert told(analyse, "return tf.scan(lambda a, b: 0.9 * a + b, x)") == [(6, Severity.INFO)]


def test_rounds_that_only_repeat_are_fine(analyse: Analyse) -> None:
    assert told(analyse, "for _ in range(20):\n    x = tf.nn.relu(x)\nreturn x") == []


def test_steps_in_a_loop_are_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "w = tf.Variable(tf.zeros((64, 1)))\nopt = tf.keras.optimizers.SGD()\n\n"
        "@tf.function\ndef epoch(data):\n"
        "    for batch in data:\n"
        "        with tf.GradientTape() as tape:\n            loss = tf.reduce_mean(batch @ w)\n"
        "        opt.apply_gradients([(tape.gradient(loss, w), w)])\n\n"
        "epoch(tf.data.Dataset.from_tensor_slices(np.zeros((4096, 64), 'float32')).batch(512).prefetch(2))\n"
    )
    assert named(analyse(text), NAME) == []


def test_map_fn_outside_of_training_is_fine(analyse: Analyse) -> None:
    text = HEAD + "rows = tf.map_fn(lambda row: row * 2.0, tf.zeros((64, 3)))\nprint(rows)\n"
    assert named(analyse(text), NAME) == []


def test_judge_by_launches_on_a_gpu_and_by_time_without(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    ran = Placement("Mul", 512, "gpu", predicted=False, spot=Spot("train.py", 6), ms=1.0)
    buckets = {"device_compute": 4.0, "launch": 6.0}
    on_gpu = evidence_of(
        10.0, gpu=True, buckets=buckets, kernels=Kernels(per_step=3000, median_us=2.0), placements=(ran,)
    )
    judged = check.judge(finding_at(check, 6), on_gpu)
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    judged = check.judge(finding_at(check, 6), evidence_of(10.0, placements=(ran,)))
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == 0.1
    assert check.judge(finding_at(check, 6), evidence_of(10.0)) is None


def test_list_of_tensors_is_no_tensor(analyse: Analyse) -> None:
    text = HEAD + (
        "inputs = tf.keras.Input((64,))\n"
        "h = tf.keras.layers.Dense(512)(inputs)\n"
        "model = tf.keras.Model(inputs, [h, tf.keras.layers.Dense(512)(h), tf.keras.layers.Dense(512)(h)])\n"
        "opt = tf.keras.optimizers.Adam()\n\n"
        "@tf.function\ndef step(batch):\n"
        "    with tf.GradientTape() as tape:\n"
        "        outputs = model(batch, training=True)\n"
        "        loss = tf.add_n([tf.reduce_mean(out) for out in outputs])\n"
        "        for i in range(len(outputs)):\n            loss += tf.reduce_sum(outputs[i])\n"
        "    grads = tape.gradient(loss, model.trainable_variables)\n"
        "    grads = [tf.clip_by_norm(g, 1.0) for g in grads]\n"
        "    opt.apply_gradients(zip(grads, model.trainable_variables))\n\n"
        "for batch in tf.data.Dataset.from_tensor_slices(tf.zeros((4096, 64))).batch(512).prefetch(2):\n"
        "    step(batch)\n"
    )
    assert named(analyse(text), NAME) == []


def test_rows_by_the_shape_are_slices(analyse: Analyse) -> None:
    assert told(analyse, "return tf.stack([tf.nn.softmax(x[i]) for i in range(x.shape[0])])")[0][0] == 6


def test_pairs_of_gradients_and_variables_are_a_list(analyse: Analyse) -> None:
    text = HEAD + (
        "w = tf.Variable(tf.zeros((64, 1)))\nopt = tf.compat.v1.train.AdamOptimizer()\n\n"
        "@tf.function\ndef step(batch):\n"
        "    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean(tf.matmul(batch, w))\n"
        "    pairs = opt.compute_gradients(lambda: loss, [w])\n"
        "    opt.apply_gradients([(tf.convert_to_tensor(g), v) for g, v in pairs])\n\n"
        "for batch in tf.data.Dataset.from_tensor_slices(tf.zeros((4096, 64))).batch(512).prefetch(2):\n"
        "    step(batch)\n"
    )
    assert named(analyse(text), NAME) == []


NETWORK = """
import tensorflow as tf

class Decode(tf.keras.layers.Layer):
    def call(self, boxes):
        return tf.map_fn(lambda row: tf.gather(row, tf.image.non_max_suppression(row, row[:, 0], 10)), boxes)

def detector(training):
    base = tf.keras.applications.VGG16(include_top=False, input_shape=(300, 300, 3))
    boxes = tf.keras.layers.Conv2D(4, 3)(base.get_layer("block4_conv3").output)
    if training:
        return tf.keras.Model(base.input, boxes)
    return tf.keras.Model(base.input, Decode()(boxes))
"""


def test_what_only_the_exported_network_has_is_not_trained(analyse: Analyse) -> None:
    train = "import tensorflow as tf\nfrom net import detector\nmodel = detector(training={})\n"
    train += "model.compile('adam', 'mse')\nmodel.fit(tf.zeros([64, 300, 300, 3]), tf.zeros([64, 1]), epochs=3)\n"
    export = "from net import detector\ndetector(training=False).save('m')\n"

    def found(training: bool) -> list[Finding]:
        files = {"net.py": NETWORK, "train.py": train.format(training), "export.py": export}
        return named(analyse(files), "map-fn-in-step")

    assert found(training=True) == []
    assert len(found(training=False)) == 1


def test_nor_where_the_network_is_not_known(analyse: Analyse) -> None:
    network = NETWORK.replace('base.get_layer("block4_conv3").output', "unheard_of(base)")
    train = "import tensorflow as tf\nfrom net import detector\nmodel = detector(training=True)\n"
    train += "model.compile('adam', 'mse')\nmodel.fit(tf.zeros([64, 300, 300, 3]), tf.zeros([64, 1]), epochs=3)\n"
    export = "from net import detector\ndetector(training=False).save('m')\n"

    assert named(analyse({"net.py": network, "train.py": train, "export.py": export}), "map-fn-in-step") == []
