"""What the page of half-precision-unsafe does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

NAME = "half-precision-unsafe"
STEP = (
    "import tensorflow as tf\n\n"
    "tf.keras.mixed_precision.set_global_policy('{}')\n"
    "model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4096), tf.keras.layers.Dense(1)])\n"
    "opt = {}\n\n"
    "@tf.function\n"
    "def step(x):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean(model(x, training=True))\n"
    "    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n\n"
    "for x in tf.data.Dataset.from_tensor_slices(tf.zeros((4096, 8))).batch(512).prefetch(2):\n    step(x)\n"
)
ADAM = "tf.keras.optimizers.Adam()"


def test_step_without_loss_scaling(analyse: Analyse) -> None:
    (found,) = named(analyse(STEP.format("mixed_float16", ADAM)), NAME)
    assert found.location.line == 11
    assert "loss scaling" in found.message


def test_step_with_loss_scaling_is_fine(analyse: Analyse) -> None:
    scaled = f"tf.keras.mixed_precision.LossScaleOptimizer({ADAM})"
    assert named(analyse(STEP.format("mixed_float16", scaled)), NAME) == []


def test_bfloat16_needs_no_scaling(analyse: Analyse) -> None:
    assert named(analyse(STEP.format("mixed_bfloat16", ADAM)), NAME) == []


def test_policy_as_an_object_and_output_as_a_layer(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "tf.keras.mixed_precision.set_global_policy(tf.keras.mixed_precision.Policy('mixed_float16'))\n"
        "inputs = tf.keras.Input((64,))\n"
        "logits = tf.keras.layers.Dense(10)(tf.keras.layers.Dense(4096)(inputs))\n"
        "outputs = tf.keras.layers.Activation('softmax'{})(logits)\n"
        "model = tf.keras.Model(inputs, outputs)\n"
        "model.compile('adam', 'sparse_categorical_crossentropy')\n"
        "model.fit(tf.zeros((4096, 64)), tf.zeros(4096), batch_size=512)\n"
    )
    assert [f.location.line for f in named(analyse(text.format("")), NAME)] == [5]
    assert named(analyse(text.format(", dtype='float32'")), NAME) == []


def test_policy_that_a_branch_may_leave_out_makes_outputs_info(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n\n"
        "def set_policy(dtype):\n"
        "    if dtype == tf.float16:\n        tf.keras.mixed_precision.set_global_policy('mixed_float16')\n\n"
        "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(10, activation='softmax')])\n"
        "model.compile('adam', 'sparse_categorical_crossentropy')\n"
        "model.fit(tf.zeros((4096, 64)), tf.zeros(4096), batch_size=512)\n"
    )
    assert [found.severity for found in named(analyse(text), NAME)] == [Severity.INFO]


def test_logits_are_fine(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(4096), "
        "tf.keras.layers.Dense(10)])\n"
        "model.compile('adam', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n"
        "model.fit(tf.zeros((4096, 64)), tf.zeros(4096), batch_size=512)\n"
    )
    assert named(analyse(text), NAME) == []


def test_scaling_behind_a_switch_counts(analyse: Analyse) -> None:
    text = STEP.format("mixed_float16", ADAM).replace(
        "    opt.apply", "    if opt.name == 'scaled':\n        loss = opt.get_scaled_loss(loss)\n    opt.apply"
    )
    assert named(analyse(text), NAME) == []


def test_output_behind_layers_that_a_loop_repeats(analyse: Analyse) -> None:
    functional = (
        "import tensorflow as tf\n"
        "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "i = tf.keras.Input((64,))\nx = i\n"
        "for _ in range(6):\n    x = tf.keras.layers.Dense(512)(x)\n"
        "o = tf.keras.layers.Dense(8, activation='softmax')(x)\n"
        "m = tf.keras.Model(i, o)\nm.compile('adam', 'mse')\nm.fit(tf.zeros((4096, 64)), tf.zeros((4096, 8)))\n"
    )
    (found,) = named(analyse(functional), NAME)
    assert found.location.line == 7
    added = (
        "import tensorflow as tf\n"
        "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "m = tf.keras.Sequential()\n"
        "for n in sizes():\n    m.add(tf.keras.layers.Dense(n))\n"
        "m.add(tf.keras.layers.Dense(8, activation='softmax'))\n{}"
        "m.compile('adam', 'mse')\nm.fit(tf.zeros((4096, 64)), tf.zeros((4096, 8)))\n"
    )
    (found,) = named(analyse(added.format("")), NAME)
    assert found.location.line == 6
    assert named(analyse(added.format("if extra():\n    m.add(tf.keras.layers.Dense(2))\n")), NAME) == []
