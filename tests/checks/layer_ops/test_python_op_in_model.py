"""What the page of python-op-in-model does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Eager, Placement, Spot

NAME = "python-op-in-model"
HEAD = "import numpy as np\nimport tensorflow as tf\nfrom sklearn.metrics import roc_auc_score\n\n"
TRAIN = (
    "model = tf.keras.Sequential([tf.keras.Input((512,)), tf.keras.layers.Dense(4096)])\n"
    "model.compile('adam', loss, run_eagerly=True)\n"
    "model.fit(np.zeros((4096, 512), 'float32'), np.zeros(4096), batch_size=256)\n"
)


def lines(analyse: Analyse, text: str) -> list[int]:
    return [finding.location.line for finding in named(analyse(text), NAME)]


def test_numpy_and_sklearn_on_tensors_of_the_loss(analyse: Analyse) -> None:
    text = HEAD + (
        "def loss(y_true, y_pred):\n"
        "    weight = np.mean(y_true - y_pred)\n"
        "    score = roc_auc_score(y_true, y_pred)\n"
        "    seen = y_pred.numpy()\n"
        "    return tf.reduce_mean(y_pred) * weight * score\n\n"
    )
    assert lines(analyse, text + TRAIN) == [6, 7, 8]


def test_static_shape_arithmetic_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "def loss(y_true, y_pred):\n"
        "    count = np.prod(y_pred.shape[1:]) * np.sqrt(2.0) * np.max(tf.keras.backend.int_shape(y_pred))\n"
        "    return tf.reduce_mean(y_pred) / count\n\n"
    )
    assert lines(analyse, text + TRAIN) == []


def test_in_the_dataset_it_is_the_maps_rule(analyse: Analyse) -> None:
    text = HEAD + (
        "ds = tf.data.Dataset.from_tensor_slices(np.zeros((4096, 512), 'float32'))\n"
        "ds = ds.map(lambda x: tf.numpy_function(np.sin, [x], tf.float32)).batch(64)\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\nmodel.fit(ds)\n"
    )
    assert lines(analyse, text) == []


def test_branch_for_eager_code_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "def loss(y_true, y_pred):\n"
        "    if tf.executing_eagerly():\n        print(y_pred.numpy())\n"
        "    return tf.reduce_mean(y_pred)\n\n"
    )
    assert lines(analyse, text + TRAIN) == []


def test_body_of_the_wrapped_function_is_reported_once_at_the_wrapper(analyse: Analyse) -> None:
    text = HEAD + (
        "def score(a, b):\n    return np.mean(a.numpy() - b.numpy())\n\n"
        "def loss(y_true, y_pred):\n    return tf.py_function(score, (y_true, y_pred), tf.float32)\n\n"
    )
    assert lines(analyse, text + TRAIN) == [9]


def test_model_applied_by_hand_to_save_images_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "class Painter(tf.keras.Model):\n"
        "    def __init__(self):\n        super().__init__()\n        self.out = tf.keras.layers.Dense(3)\n"
        "    def call(self, x):\n        return np.clip(self.out(x), 0, 1)\n"
        "    def train_step(self, data):\n"
        "        with tf.GradientTape() as tape:\n            loss = tf.reduce_mean(self.out(data))\n"
        "        grads = tape.gradient(loss, self.trainable_variables)\n"
        "        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))\n"
        "        return {'loss': loss}\n\n"
        "model = Painter()\nmodel.compile('adam')\nmodel.fit(np.zeros((4096, 64), 'float32'), batch_size=256)\n"
        "images = model(tf.zeros((4, 64)))\n"
    )
    assert lines(analyse, text) == []


def test_judge_by_the_time_of_the_python_op(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 9, ops=("EagerPyFunc",))

    def ran(ms: float) -> tuple[Placement, ...]:
        return (Placement("EagerPyFunc", 1, "cpu", predicted=True, spot=Spot("train.py", 9), ms=ms),)

    judged = [check.judge(finding, evidence_of(10.0, placements=ran(ms))) for ms in (2.0, 0.1)]
    assert [j.verdict for j in judged if j] == [Verdict.CONFIRMED, Verdict.UNMEASURED]
    assert check.judge(finding, evidence_of(10.0)) is None


def test_judge_numpy_by_what_running_op_by_op_costs(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 9)
    judged = check.judge(finding, evidence_of(10.0, eager=Eager(80.0, 0.7)))
    assert judged is not None and judged.verdict is Verdict.CONFIRMED
    compiled = check.judge(finding, evidence_of(10.0, eager=Eager(3.0, 0.01)))
    assert compiled is not None and compiled.verdict is Verdict.REFUTED
