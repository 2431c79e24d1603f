"""What the page of cpu-only-op does not show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Placement, Spot

NAME = "cpu-only-op"
HEAD = "import numpy as np\nimport tensorflow as tf\n\nx = np.zeros((512, 24, 64), 'float32')\n"
MODEL = (
    "model = tf.keras.Sequential([tf.keras.Input((24, 64)), tf.keras.layers.Dense(4096), "
    "tf.keras.layers.Dense(20)])\n"
)
STEP = (
    HEAD
    + MODEL
    + (
        "opt = tf.keras.optimizers.Adam()\n\n"
        "@tf.function{}\n"
        "def step(batch):\n"
        "    with tf.GradientTape() as tape:\n"
        "        out = model(batch)\n"
        "        loss = tf.reduce_mean(out)\n"
        "    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n"
        "    return {}\n\n"
        "for batch in tf.data.Dataset.from_tensor_slices(x).batch(64).prefetch(2):\n    step(batch)\n"
    )
)
SEARCH = "tf.nn.ctc_beam_search_decoder(tf.transpose(out, (1, 0, 2)), tf.fill([64], 24))"


def test_beam_search_in_the_step(analyse: Analyse) -> None:
    found = named(analyse(STEP.format("", SEARCH)), NAME)
    assert [f.location.line for f in found] == [14]
    assert "beam" in found[0].message


def test_jit_turns_it_into_an_error(analyse: Analyse) -> None:
    (found,) = named(analyse(STEP.format("(jit_compile=True)", SEARCH)), NAME)
    assert "XLA cannot compile" in found.message


def test_op_that_xla_compiles_is_fine_under_jit(analyse: Analyse) -> None:
    assert named(analyse(STEP.format("(jit_compile=True)", "tf.random.shuffle(out)")), NAME) == []
    assert len(named(analyse(STEP.format("", "tf.random.shuffle(out)")), NAME)) == 1


def test_decoding_after_training_is_fine(analyse: Analyse) -> None:
    text = (
        HEAD
        + MODEL
        + (
            "model.compile('adam', 'mse')\nmodel.fit(x, np.zeros((512, 24, 20)), batch_size=64)\n\n"
            "@tf.function\ndef read(batch):\n    out = model(batch)\n    return " + SEARCH + "\n\n"
            "print(read(x[:64]))\n"
        )
    )
    assert named(analyse(text), NAME) == []


def test_once_in_a_hundred_steps_is_fine(analyse: Analyse) -> None:
    text = (
        HEAD
        + MODEL
        + (
            "opt = tf.keras.optimizers.Adam()\n"
            "ds = tf.data.Dataset.from_tensor_slices(x).batch(64).prefetch(2)\n\n"
            "@tf.function\ndef step(batch):\n"
            "    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean(model(batch))\n"
            "    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), "
            "model.trainable_variables))\n\n"
            "for i, batch in enumerate(ds):\n    step(batch)\n    if i % 100 == 0:\n        out = model(batch)\n"
            "        " + SEARCH + "\n"
        )
    )
    assert named(analyse(text), NAME) == []


def test_judge_by_time_on_the_cpu(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 14, ops=("CTCBeamSearchDecoder",))

    def ran(device: str, ms: float | None) -> Placement:
        return Placement(
            "CTCBeamSearchDecoder", 1, device, predicted=device == "cpu", spot=Spot("train.py", 14), ms=ms
        )

    verdicts = [
        check.judge(finding, evidence_of(10.0, placements=(placement,)))
        for placement in (ran("cpu", 4.0), ran("cpu", 0.1), ran("gpu", 1.0))
    ]
    # Where no GPU was there to see it on, a short op does not say what the way to the CPU and back costs.
    assert [j.verdict for j in verdicts if j] == [Verdict.CONFIRMED, Verdict.UNMEASURED, Verdict.REFUTED]
    short = replace(ran("cpu", 0.1), predicted=False)
    judged = check.judge(finding, evidence_of(10.0, placements=(short,)))
    assert judged is not None
    assert judged.verdict is Verdict.MINOR
    assert check.judge(finding, evidence_of(10.0, placements=(ran("cpu", None),))) is None
    elsewhere = finding_at(check, 20, ops=("CTCBeamSearchDecoder",))
    assert check.judge(elsewhere, evidence_of(10.0, placements=(ran("cpu", 4.0),))) is None


def test_branch_of_inference_alone_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "class Part(tf.keras.layers.Layer):\n"
        "    def call(self, x, training=None):\n"
        "        if training:\n"
        "            return tf.image.random_jpeg_quality(x, 50, 90)\n"
        "        else:\n"
        "            return tf.image.adjust_jpeg_quality(x, 50)\n\n"
        "model = tf.keras.Sequential([tf.keras.Input((24, 64, 3)), Part(), tf.keras.layers.Conv2D(64, 3)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(np.zeros((512, 24, 64, 3)), np.zeros(512), batch_size=64)\n"
    )
    assert [f.location.line for f in named(analyse(text), NAME)] == [8]


def test_index_vector_is_info(analyse: Analyse) -> None:
    (found,) = named(analyse(STEP.format("", "tf.random.shuffle(tf.range(64))")), NAME)
    assert found.severity is Severity.INFO


def test_program_on_another_backend_is_left_alone(analyse: Analyse) -> None:
    text = "import os\nos.environ['KERAS_BACKEND'] = 'jax'\n" + STEP.format("", SEARCH)
    assert named(analyse(text), NAME) == []


BOXES = """
class Decoder(tf.keras.layers.Layer):
    def call(self, boxes, scores):
        return tf.image.combined_non_max_suppression(boxes, scores, 10, 100)
"""


def test_boxes_suppressed_behind_the_model_are_info(analyse: Analyse) -> None:
    assert [found.severity for found in named(analyse(HEAD + BOXES), NAME)] == [Severity.INFO]


def test_proposals_are_suppressed_in_every_step(analyse: Analyse) -> None:
    text = HEAD + BOXES.replace("Decoder", "ProposalGenerator")
    assert [found.severity for found in named(analyse(text), NAME)] == [Severity.WARNING]


def test_sampled_classes_are_few_numbers(analyse: Analyse) -> None:
    sampled = "tf.nn.nce_loss(model.w, model.b, out, out, 64, 5000)"
    assert [found.severity for found in named(analyse(STEP.format("", sampled)), NAME)] == [Severity.INFO]


def test_model_applied_for_inference_alone_is_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "class Net(tf.keras.Model):\n"
        "    def call(self, x, training=True):\n"
        "        return tf.random.shuffle(x) if not training else x\n\n"
        "net = Net()\nprint(net(x, training=False))\n"
    )
    assert named(analyse(text), NAME) == []


FITTED = HEAD + MODEL + "model.compile('adam', 'mse')\nmodel.fit(x, x, batch_size=256)\n\n"


def test_module_for_export_is_fine(analyse: Analyse) -> None:
    text = FITTED + (
        "class Export(tf.Module):\n"
        "    def __init__(self, model):\n        self.model = model\n\n"
        "    @tf.function\n"
        "    def __call__(self, x):\n"
        "        if x.dtype == tf.string:\n            x, _ = tf.audio.decode_wav(tf.io.read_file(x))\n"
        "        return self.model(x, training=False)\n\n"
        "Export(model)(x)\n"
    )
    assert named(analyse(text), NAME) == []


def test_layer_that_a_graph_function_applies_to_input_is_fine(analyse: Analyse) -> None:
    text = FITTED + (
        "class Mix(tf.keras.layers.Layer):\n"
        "    def call(self, x):\n        return x + tf.random.shuffle(x)\n\n"
        "mix = Mix()\n\n"
        "@tf.function\ndef augment(x, y):\n    return mix(x), y\n\n"
        "model.fit(load_somehow().map(augment))\n"
    )
    assert named(analyse(text), NAME) == []


DETECTOR = """
import tensorflow as tf
from common import normalize

class Detector(tf.keras.Model):
    def call(self, boxes, scores):
        return self.proposals(normalize(boxes), scores)

    def proposals(self, boxes, scores):
        return tf.image.combined_non_max_suppression(boxes, scores, 10, 100)
"""
TRAINS_ANOTHER = FITTED + "from common import normalize\nmodel.fit(normalize(x), x, batch_size=256)\n"


@pytest.mark.parametrize("script", ["", "import detector\n"])
def test_training_tells_of_the_models_that_it_is_brought_together_with(analyse: Analyse, script: str) -> None:
    common = "def normalize(x):\n    return x / 255\n"
    files = {"common.py": common, "detector.py": DETECTOR, "train.py": script + TRAINS_ANOTHER}
    found = [finding.location.path for finding in named(analyse(files), NAME)]
    assert found == ([] if script else ["detector.py"])


def test_script_that_has_both_models_tells_too(analyse: Analyse) -> None:
    trained = HEAD + MODEL + "model.compile('adam', 'mse')\n"
    files = {
        "common.py": "def normalize(x):\n    return x / 255\n",
        "detector.py": DETECTOR,
        "net.py": trained,
        "train.py": "from net import model, x\nmodel.fit(x, x, batch_size=256)\n",
        "export.py": "import detector, net\ndetector.Detector().save('detector')\n",
    }
    assert named(analyse(files), NAME) == []
