"""What the page of legacy-multi-gpu does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named

NAME = "legacy-multi-gpu"
TOWERS = (
    "import tensorflow as tf\n\n"
    "model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
    "opt = tf.keras.optimizers.Adam()\n\n"
    "@tf.function\ndef step(batch):\n"
    "    grads = []\n"
    "    for i, part in enumerate(tf.split(batch, 4)):\n"
    "        with tf.device({}):\n"
    "            with tf.GradientTape() as tape:\n"
    "                loss = tf.reduce_mean(model(part))\n"
    "            grads.append(tape.gradient(loss, model.trainable_variables))\n"
    "    opt.apply_gradients(zip(grads[0], model.trainable_variables))\n\n"
    "for batch in tf.data.Dataset.from_tensor_slices(tf.zeros((512, 224, 224, 3))).batch(256).prefetch(2):\n"
    "    step(batch)\n"
)


def test_towers_under_every_spelling(analyse: Analyse) -> None:
    for device in ("f'/gpu:{i}'", "'/gpu:%d' % i", "'/device:GPU:' + str(i)", "'/gpu:{}'.format(i)"):
        found = named(analyse(TOWERS.replace("{}", device, 1)), NAME)
        assert [f.location.line for f in found] == [10], device


def test_one_gpu_of_the_users_choice_is_fine(analyse: Analyse) -> None:
    assert named(analyse(TOWERS.replace("{}", "'/gpu:1'", 1)), NAME) == []


def test_parts_of_one_model_on_two_gpus_are_fine(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n\n"
        "inputs = tf.keras.Input((64,))\n"
        "with tf.device('/gpu:0'):\n    h = tf.keras.layers.Dense(4096)(inputs)\n"
        "with tf.device('/gpu:1'):\n    outputs = tf.keras.layers.Dense(1)(h)\n"
        "model = tf.keras.Model(inputs, outputs)\nmodel.compile('adam', 'mse')\n"
        "model.fit(tf.zeros((4096, 64)), tf.zeros(4096), batch_size=512)\n"
    )
    assert named(analyse(text), NAME) == []
