"""What the page of memory-growth-setup does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

NAME = "memory-growth-setup"


def test_growth_beside_a_limit(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "gpus = tf.config.list_physical_devices('GPU')\n"
        "tf.config.set_visible_devices(gpus[0], 'GPU')\n"
        "tf.config.experimental.set_memory_growth(gpus[0], True)\n"
        "tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(1024)])\n"
    )
    (found,) = named(analyse(text), NAME)
    assert found.location.line == 4
    assert "limit" in found.message


def test_session_options_are_told(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "config = tf.compat.v1.ConfigProto()\n"
        "config.gpu_options.allow_growth = True\n"
        "session = tf.compat.v1.Session(config=config)\n"
        "model = tf.keras.applications.ResNet50(weights=None)\nmodel.compile('adam', 'mse')\n"
        "model.fit(tf.zeros((512, 224, 224, 3)), tf.zeros((512, 1000)), batch_size=64)\n"
    )
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (3, Severity.INFO)


def test_session_options_of_a_tf1_program_are_right(analyse: Analyse) -> None:
    text = (
        "import tensorflow.compat.v1 as tf\n"
        "tf.disable_eager_execution()\n"
        "config = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))\n"
        "session = tf.Session(config=config)\n"
    )
    assert named(analyse(text), NAME) == []


def test_async_allocator_makes_it_moot(analyse: Analyse) -> None:
    text = (
        "import os\nos.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'\nimport tensorflow as tf\n"
        "gpus = tf.config.list_physical_devices('GPU')\n"
        "tf.config.experimental.set_memory_growth(gpus[0], True)\n"
    )
    assert named(analyse(text), NAME) == []


def test_absence_is_no_fault(analyse: Analyse) -> None:
    text = "import tensorflow as tf\nx = tf.constant([1.0])\nprint(tf.config.list_physical_devices('GPU'))\n"
    assert named(analyse(text), NAME) == []


def test_listing_devices_does_not_start_the_runtime(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "tf.random.set_seed(1)\n"
        "print(len(tf.config.list_physical_devices('GPU')))\n"
        "for gpu in tf.config.list_physical_devices('GPU'):\n"
        "    tf.config.experimental.set_memory_growth(gpu, True)\n"
    )
    assert named(analyse(text), NAME) == []


def test_op_in_another_function_says_nothing_of_the_order(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n\n"
        "def loss(x):\n    return tf.constant(1.0) * x\n\n"
        "def setup():\n"
        "    for gpu in tf.config.list_physical_devices('GPU'):\n"
        "        tf.config.experimental.set_memory_growth(gpu, True)\n"
    )
    assert named(analyse(text), NAME) == []
