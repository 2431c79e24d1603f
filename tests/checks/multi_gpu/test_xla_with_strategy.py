"""What the page of xla-with-strategy does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named

NAME = "xla-with-strategy"
STEP = (
    "import tensorflow as tf\n\n"
    "strategy = tf.distribute.{}()\n"
    "with strategy.scope():\n"
    "    model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
    "    opt = tf.keras.optimizers.Adam()\n\n"
    "def replica(x):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean(model(x, training=True))\n"
    "    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n\n"
    "@tf.function{}\n"
    "def step(x):\n"
    "    strategy.run(replica, args=(x,))\n\n"
    "size = 64 * strategy.num_replicas_in_sync\n"
    "ds = tf.data.Dataset.from_tensor_slices(tf.zeros((512, 224, 224, 3))).batch(size)\n"
    "for x in strategy.experimental_distribute_dataset(ds):\n"
    "    step(x)\n"
)


def test_function_around_the_replicas(analyse: Analyse) -> None:
    found = named(analyse(STEP.format("MirroredStrategy", "(jit_compile=True)")), NAME)
    assert [f.location.line for f in found] == [13]


def test_plain_function_is_fine(analyse: Analyse) -> None:
    assert named(analyse(STEP.format("MirroredStrategy", "")), NAME) == []


def test_strategy_of_one_device_is_fine(analyse: Analyse) -> None:
    text = STEP.format("OneDeviceStrategy", "(jit_compile=True)").replace("Strategy()", "Strategy('/gpu:0')")
    assert named(analyse(text), NAME) == []


def test_horovod(analyse: Analyse) -> None:
    text = (
        "import horovod.tensorflow.keras as hvd\nimport tensorflow as tf\n\n"
        "hvd.init()\n"
        "model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
        "model.compile('adam', 'mse', jit_compile=True)\n"
        "model.fit(tf.zeros((512, 224, 224, 3)), tf.zeros((512, 10)), batch_size=64)\n"
    )
    assert [f.location.line for f in named(analyse(text), NAME)] == [6]
    assert named(analyse(text.replace("hvd.init()\n", "\n")), NAME) == []
