"""One canonical spelling for everything outside the project.

``tf.`` for TensorFlow, ``keras.`` for every Keras (tf.keras, tf_keras, keras.src, tensorflow.python.keras); other
packages keep their own dotted names. Old spellings are folded into today's, so that a rule names each thing once.
"""

from __future__ import annotations

import functools

#: Longest first: the first prefix that fits wins.
_PREFIXES = (
    ("tensorflow.python.keras.api.keras", "keras"),
    ("tensorflow.python.keras.api._v2.keras", "keras"),
    ("tensorflow.compat.v2.keras", "keras"),
    ("tensorflow.compat.v1.keras", "keras"),
    ("tensorflow._api.v2.v2.keras", "keras"),
    ("tensorflow.python.keras", "keras"),
    ("tensorflow.compat.v2", "tf"),
    ("tensorflow.keras", "keras"),
    ("tf_keras.src", "keras"),
    ("tf_keras.api", "keras"),
    ("keras.api._v2.keras", "keras"),
    ("keras.src", "keras"),
    ("keras.api", "keras"),
    ("keras.engine", "keras"),
    ("keras._tf_keras.keras", "keras"),
    ("tf_keras", "keras"),
    ("tensorflow", "tf"),
    ("multiprocess", "multiprocessing"),
)

#: Modules of Keras that were renamed as a whole.
_MODULES = (
    ("keras.layers.experimental.preprocessing.", "keras.layers."),
    ("keras.layers.preprocessing.", "keras.layers."),
    ("keras.layers.experimental.SyncBatchNormalization", "keras.layers.BatchNormalization"),
    ("keras.layers.experimental.", "keras.layers."),
    ("keras.mixed_precision.experimental.", "keras.mixed_precision."),
    ("keras.optimizers.legacy.", "keras.optimizers."),
    ("keras.optimizers.experimental.", "keras.optimizers."),
    ("keras.optimizers.schedules.", "keras.optimizers.schedules."),
    ("keras.preprocessing.image.ImageDataGenerator", "keras.preprocessing.image.ImageDataGenerator"),
    ("keras.legacy.preprocessing.image.", "keras.preprocessing.image."),
    ("keras.backend.tensorflow.", "keras.backend."),
    ("keras.initializers.initializers_v2.", "keras.initializers."),
    ("keras.training.", "keras."),
    ("tf.optimizers.legacy.", "keras.optimizers."),
    ("tf.optimizers.", "keras.optimizers."),
    ("tf.losses.", "keras.losses."),
    ("tf.metrics.", "keras.metrics."),
    ("tf.python.data.ops.dataset_ops.", "tf.data."),
    ("tf.python.framework.ops.", "tf."),
)

#: Names that mean the same thing.
_ALIASES = {
    "keras.models.Sequential": "keras.Sequential",
    "keras.models.Model": "keras.Model",
    "keras.Functional": "keras.Model",
    "keras.training.Model": "keras.Model",
    "keras.layers.Input": "keras.Input",
    "keras.layers.InputLayer": "keras.layers.InputLayer",
    "keras.utils.Sequence": "keras.utils.PyDataset",
    "keras.utils.all_utils.Sequence": "keras.utils.PyDataset",
    "keras.utils.data_utils.Sequence": "keras.utils.PyDataset",
    "keras.preprocessing.image_dataset_from_directory": "keras.utils.image_dataset_from_directory",
    "keras.preprocessing.text_dataset_from_directory": "keras.utils.text_dataset_from_directory",
    "keras.preprocessing.timeseries_dataset_from_array": "keras.utils.timeseries_dataset_from_array",
    "keras.saving.load_model": "keras.models.load_model",
    "keras.models.clone_model": "keras.models.clone_model",
    "keras.engine.Layer": "keras.layers.Layer",
    "keras.Layer": "keras.layers.Layer",
    "keras.engine.topology.Layer": "keras.layers.Layer",
    "keras.engine.base_layer.Layer": "keras.layers.Layer",
    "keras.topology.Layer": "keras.layers.Layer",
    "keras.base_layer.Layer": "keras.layers.Layer",
    "keras.layers.CuDNNLSTM": "keras.layers.CuDNNLSTM",
    "keras.Optimizer": "keras.optimizers.Optimizer",
    "keras.Loss": "keras.losses.Loss",
    "keras.Metric": "keras.metrics.Metric",
    "keras.mixed_precision.set_policy": "keras.mixed_precision.set_global_policy",
    "keras.mixed_precision.set_dtype_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.set_dtype_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.set_floatx": "keras.backend.set_floatx",
    "keras.config.set_image_data_format": "keras.backend.set_image_data_format",
    "keras.utils.clear_session": "keras.backend.clear_session",
    "keras.mixed_precision.LossScaleOptimizer": "keras.optimizers.LossScaleOptimizer",
    "keras.preprocessing.sequence.pad_sequences": "keras.utils.pad_sequences",
    "keras.utils.np_utils.to_categorical": "keras.utils.to_categorical",
    "keras.utils.training_utils.multi_gpu_model": "keras.utils.multi_gpu_model",
    "keras.utils.multi_gpu_utils.multi_gpu_model": "keras.utils.multi_gpu_model",
    "tf.data.experimental.AUTOTUNE": "tf.data.AUTOTUNE",
    "tf.contrib.data.AUTOTUNE": "tf.data.AUTOTUNE",
    "tf.data.python.ops.dataset_ops.Dataset": "tf.data.Dataset",
    "tf.data.DatasetV2": "tf.data.Dataset",
    "tf.compat.v1.data.Dataset": "tf.data.Dataset",
    "tf.compat.v1.data.TFRecordDataset": "tf.data.TFRecordDataset",
    "tf.compat.v1.data.TextLineDataset": "tf.data.TextLineDataset",
    "tf.compat.v1.data.FixedLengthRecordDataset": "tf.data.FixedLengthRecordDataset",
    "tf.compat.v1.data.experimental.make_csv_dataset": "tf.data.experimental.make_csv_dataset",
    "tf.compat.v1.data.experimental.CsvDataset": "tf.data.experimental.CsvDataset",
    "tf.contrib.data.TFRecordDataset": "tf.data.TFRecordDataset",
    "tf.compat.v1.GradientTape": "tf.GradientTape",
    "tf.compat.v1.function": "tf.function",
    "tf.compat.v1.numpy_function": "tf.numpy_function",
    "tf.compat.v1.py_function": "tf.py_function",
    "tf.contrib.eager.py_func": "tf.py_function",
    "tf.py_func": "tf.compat.v1.py_func",
    "tf.compat.v1.device": "tf.device",
    "tf.compat.v1.map_fn": "tf.map_fn",
    "tf.compat.v1.scan": "tf.scan",
    "tf.compat.v1.while_loop": "tf.while_loop",
    "tf.compat.v1.boolean_mask": "tf.boolean_mask",
    "tf.compat.v1.where": "tf.where",
    "tf.compat.v1.distribute.MirroredStrategy": "tf.distribute.MirroredStrategy",
    "tf.distribute.experimental.MultiWorkerMirroredStrategy": "tf.distribute.MultiWorkerMirroredStrategy",
    "tf.distribute.experimental.CentralStorageStrategy": "tf.distribute.experimental.CentralStorageStrategy",
    "tf.distribute.experimental.TPUStrategy": "tf.distribute.TPUStrategy",
    "tf.distribute.experimental.ParameterServerStrategy": "tf.distribute.ParameterServerStrategy",
    "tf.config.experimental.list_physical_devices": "tf.config.list_physical_devices",
    "tf.config.experimental.list_logical_devices": "tf.config.list_logical_devices",
    "tf.config.experimental.set_visible_devices": "tf.config.set_visible_devices",
    "tf.config.experimental_run_functions_eagerly": "tf.config.run_functions_eagerly",
    "tf.config.experimental.run_functions_eagerly": "tf.config.run_functions_eagerly",
    "tf.config.set_logical_device_configuration": "tf.config.set_logical_device_configuration",
    "tf.config.experimental.set_virtual_device_configuration": "tf.config.set_logical_device_configuration",
    "tf.config.experimental.VirtualDeviceConfiguration": "tf.config.LogicalDeviceConfiguration",
    "tf.config.experimental.LogicalDeviceConfiguration": "tf.config.LogicalDeviceConfiguration",
    "tf.config.experimental.set_device_policy": "tf.config.experimental.set_device_policy",
    "tf.GPUOptions": "tf.compat.v1.GPUOptions",
    "tf.ConfigProto": "tf.compat.v1.ConfigProto",
    "tf.Session": "tf.compat.v1.Session",
    "tf.InteractiveSession": "tf.compat.v1.InteractiveSession",
    "tf.enable_eager_execution": "tf.compat.v1.enable_eager_execution",
    "tf.disable_eager_execution": "tf.compat.v1.disable_eager_execution",
}

#: Keras classes moved between private modules: ``keras.layers.rnn.lstm.LSTM`` → ``keras.layers.LSTM``.
_FLAT = ("keras.layers.", "keras.optimizers.", "keras.callbacks.", "keras.losses.", "keras.metrics.")


@functools.lru_cache(maxsize=20_000)
def canonical(dotted: str) -> str:
    """Return the canonical spelling of the absolute dotted name `dotted`."""
    name = dotted
    for prefix, short in _PREFIXES:
        if name == prefix or name.startswith(prefix + "."):
            name = short + name[len(prefix) :]
            break
    return settle(name)


@functools.lru_cache(maxsize=20_000)
def settle(name: str) -> str:
    """Fold renamed modules and aliases of a name that already starts with ``tf`` or ``keras``."""
    if name.startswith("tf.keras"):
        name = name[3:]
    elif name.startswith("tf.compat.v1.keras"):
        name = name[13:]
    elif name.startswith("tf.compat.v2"):
        name = "tf" + name[12:]
    elif name.startswith("tf.python.keras"):
        name = name[10:]
    for prefix, short in _MODULES:
        if name.startswith(prefix):
            name = short + name[len(prefix) :]
            break
    name = _ALIASES.get(name, name)
    return _flatten(name)


def _flatten(name: str) -> str:
    """Drop private sub-modules between a public Keras module and a class: lower-case parts before a capital."""
    for prefix in _FLAT:
        if name.startswith(prefix):
            parts = name[len(prefix) :].split(".")
            if len(parts) > 1 and parts[-1][:1].isupper() and all(part.islower() for part in parts[:-1]):
                return prefix + parts[-1] if parts[0] != "schedules" else name
    return name


def member(base: str, attribute: str) -> str:
    """Return the canonical name of `attribute` of the external thing `base`."""
    return settle(f"{base}.{attribute}")
