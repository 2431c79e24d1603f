"""What must not happen in a trace: no checkpoint, saved model, log or profile of the user's is written."""

import functools
import importlib

from .hooks import patch, patch_defining

CALLBACKS = ("ModelCheckpoint", "BackupAndRestore", "CSVLogger", "TensorBoard")


class Mutes:
    """Replaces what writes by nothing and remembers the names of what was called."""

    def __init__(self):
        self.names = set()
        self.classes = []

    def install(self, tf):
        """Mute the savers, summary writers and profiler calls of `tf`."""
        for owner, name, label, result in (
            (tf.saved_model, "save", "tf.saved_model.save", None),
            (tf.train.Checkpoint, "save", "tf.train.Checkpoint.save", "checkpoint"),
            (tf.train.Checkpoint, "write", "tf.train.Checkpoint.write", "checkpoint"),
            (tf.train.CheckpointManager, "save", "tf.train.CheckpointManager.save", None),
            (tf.profiler.experimental, "start", "tf.profiler.experimental.start", None),
            (tf.profiler.experimental, "stop", "tf.profiler.experimental.stop", None),
            (tf.summary, "trace_on", "tf.summary.trace_on", None),
            (tf.summary, "trace_export", "tf.summary.trace_export", None),
        ):
            patch(owner, name, functools.partial(self._silent, label, result))
        patch(tf.summary, "create_file_writer", functools.partial(self._writer, tf))
        save = importlib.import_module("tensorflow.python.saved_model.save")
        patch(save, "save", functools.partial(self._silent, "tf.saved_model.save", None))

    def install_keras(self, keras):
        """Mute the saving methods of models, and learn which callbacks write."""
        for name in ("save", "save_weights", "export"):
            patch_defining(keras.Model, name, functools.partial(self._silent, "Model." + name, None))
        for module in (getattr(keras, "saving", None), getattr(keras, "models", None)):
            for name in ("save_model", "save_weights"):
                if module is not None and hasattr(module, name):
                    patch(module, name, functools.partial(self._silent, "keras.saving." + name, None))
        found = (getattr(keras.callbacks, name, None) for name in CALLBACKS)
        self.classes.extend(cls for cls in found if isinstance(cls, type))

    def _silent(self, label, result, original):
        def watched(*args, **kwargs):
            self.names.add(label)
            return result

        return watched

    def _writer(self, tf, original):
        def watched(*args, **kwargs):
            self.names.add("tf.summary.create_file_writer")
            return tf.summary.create_noop_writer()

        return watched

    def callbacks(self, listed):
        """Return `listed` without the callbacks that write files."""
        if listed is None or not isinstance(listed, (list, tuple)):
            listed = [] if listed is None else [listed]
        kept = []
        for callback in listed:
            if isinstance(callback, tuple(self.classes)):
                self.names.add(type(callback).__name__)
            else:
                kept.append(callback)
        return kept
