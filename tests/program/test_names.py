"""One canonical spelling for everything outside the project, however it is imported."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read
from tflint_gpu.program.names import canonical, member


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("tensorflow", "tf"),
        ("tensorflow.keras.layers.Dense", "keras.layers.Dense"),
        ("tf_keras.layers.Dense", "keras.layers.Dense"),
        ("tensorflow.python.keras.layers.Dense", "keras.layers.Dense"),
        ("keras.src.layers.Dense", "keras.layers.Dense"),
        ("keras.src.layers.rnn.lstm.LSTM", "keras.layers.LSTM"),
        ("keras.layers.experimental.preprocessing.Rescaling", "keras.layers.Rescaling"),
        ("keras.models.Sequential", "keras.Sequential"),
        ("keras.optimizers.legacy.Adam", "keras.optimizers.Adam"),
        ("tensorflow.optimizers.Adam", "keras.optimizers.Adam"),
        ("keras.optimizers.schedules.ExponentialDecay", "keras.optimizers.schedules.ExponentialDecay"),
        ("tensorflow.compat.v2.function", "tf.function"),
        ("tensorflow.data.experimental.AUTOTUNE", "tf.data.AUTOTUNE"),
        ("keras.utils.Sequence", "keras.utils.PyDataset"),
        ("numpy.load", "numpy.load"),
        ("tensorflowing.thing", "tensorflowing.thing"),
        ("keras_tuner.Tuner", "keras_tuner.Tuner"),
    ],
)
def test_spellings_of_one_thing(spelled: str, name: str) -> None:
    assert canonical(spelled) == name
    assert canonical(name) == name


def test_member_of_a_renamed_module() -> None:
    assert member("tf.keras", "layers") == "keras.layers"
    assert member("keras.models", "Model") == "keras.Model"


@pytest.mark.parametrize(
    "lines",
    [
        "import tensorflow\ntensorflow.keras.layers.LSTM(8)",
        "import tensorflow as t\nt.keras.layers.LSTM(8)",
        "import tensorflow.keras as k\nk.layers.LSTM(8)",
        "import tensorflow.keras.layers as L\nL.LSTM(8)",
        "from tensorflow import keras\nkeras.layers.LSTM(8)",
        "from tensorflow.keras import layers\nlayers.LSTM(8)",
        "from tensorflow.keras.layers import LSTM as R\nR(8)",
        "from tensorflow.keras.layers import *\nLSTM(8)",
        "import keras\nkeras.layers.LSTM(8)",
        "from keras import layers as kl\nkl.LSTM(8)",
        "import tf_keras as keras\nkeras.layers.LSTM(8)",
        "from keras.src.layers.rnn.lstm import LSTM\nLSTM(8)",
        "import tensorflow.compat.v2 as tf\ntf.keras.layers.LSTM(8)",
        "import importlib\ntf = importlib.import_module('tensorflow')\ntf.keras.layers.LSTM(8)",
        "tf = __import__('tensorflow')\ntf.keras.layers.LSTM(8)",
        "try:\n    import keras\nexcept ImportError:\n    from tensorflow import keras\nkeras.layers.LSTM(8)",
        "def f():\n    import tensorflow as tf\n    return tf.keras.layers.LSTM(8)\nf()",
        "import tensorflow as tf\nL = tf.keras.layers\nR = L.LSTM\nR(8)",
        "import tensorflow as tf\nclass K:\n    layer = tf.keras.layers.LSTM\nK.layer(8)",
        "import tensorflow as tf\ngetattr(tf.keras.layers, 'LSTM')(8)",
        "import tensorflow as tf\n{'lstm': tf.keras.layers.LSTM}['lstm'](8)",
    ],
)
def test_call_is_named_however_it_is_imported(read: Read, lines: str) -> None:
    program = read({"train.py": f"# tensorflow\n{lines}\n"}, head=False)

    assert len(list(program.calls_to("keras.layers.LSTM"))) == 1


def test_name_of_the_project_hides_one_of_the_framework(read: Read) -> None:
    program = read("class tf:\n    @staticmethod\n    def function(f): return f\ntf.function(print)\n")

    assert not program.functions


def test_method_is_named_by_the_type_of_its_receiver(read: Read) -> None:
    program = read(
        """
loss = tf.reduce_mean(x)
loss.numpy()
model.predict(x)
optimizer = tf.keras.optimizers.Adam()
optimizer.apply_gradients([])
metric = tf.keras.metrics.Mean()
metric.update_state(loss)
"""
    )
    names = [call.callee for call in program.calls]

    assert "tf.Tensor.numpy" in names
    assert "keras.Model.predict" in names
    assert "keras.optimizers.Optimizer.apply_gradients" in names
    assert "keras.metrics.Metric.update_state" in names


def test_method_of_an_unknown_receiver_is_named_only_where_no_doubt_is_left(read: Read) -> None:
    program = read(
        "def f(thing):\n    thing.fit(1, 2)\n    thing.fit(1, epochs=3)\n    thing.train_on_batch(1)\n    thing()"
    )
    names = [call.callee for call in program.calls if call.qualname == "f"]

    assert names == ["", "keras.Model.fit", "keras.Model.train_on_batch", ""]
