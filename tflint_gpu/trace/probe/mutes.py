"""What must not happen in a trace: that checkpoints, saved models, logs, pictures or profiles are written."""

import builtins
import functools
import importlib
import io
import os
import tempfile

from .hooks import patch, patch_defining

CALLBACKS = ("ModelCheckpoint", "BackupAndRestore", "CSVLogger", "TensorBoard", "RemoteMonitor")
#: Files of the script's own writing that are named at most.
NAMED = 20


class Mutes:
    """Replaces what writes by nothing and remembers the names of what was called.

    What a program writes with Python's own `open` cannot be held back, since the next line may read it: `written`
    names these files.
    """

    def __init__(self, places):
        self.places = places
        self.names = set()
        self.classes = []
        self.written = []

    def watch_files(self):
        """Note the files that Python code opens for writing."""
        opening = builtins.open

        @functools.wraps(opening)
        def watched(file, mode="r", *args, **kwargs):
            opened = opening(file, mode, *args, **kwargs)
            if isinstance(mode, str) and not mode.startswith("r"):
                self._opened(file)
            return opened

        builtins.open = io.open = watched

    def _opened(self, file):
        try:
            path = os.path.realpath(os.fspath(file))
        except TypeError:
            return
        outside = path.startswith((os.path.realpath(tempfile.gettempdir()) + os.sep, "/dev/", "/proc/"))
        project = any(path.startswith(root) for root in self.places.roots)
        if (outside and not project) or len(self.written) >= NAMED or self.places.caller() is None:
            return
        name = os.path.relpath(path, self.places.start).replace(os.sep, "/")
        if name not in self.written:
            self.written.append(name)

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
        writers = importlib.import_module("tensorflow.python.ops.summary_ops_v2")
        for owner in (tf.summary, tf.compat.v2.summary, writers):
            for name in ("create_file_writer", "create_file_writer_v2"):
                patch(owner, name, functools.partial(self._writer, tf))
        save = importlib.import_module("tensorflow.python.saved_model.save")
        patch(save, "save", functools.partial(self._silent, "tf.saved_model.save", None))
        patch(tf.data.Dataset, "cache", self._cache)

    def install_keras(self, keras):
        """Mute the saving methods of models and the callbacks that write, wherever they are called from."""
        for name in ("save", "save_weights", "export"):
            patch_defining(keras.Model, name, functools.partial(self._silent, "Model." + name, None))
        for module in (getattr(keras, "saving", None), getattr(keras, "models", None)):
            for name in ("save_model", "save_weights"):
                if module is not None and hasattr(module, name):
                    patch(module, name, functools.partial(self._silent, "keras.saving." + name, None))
        patch(keras.utils, "plot_model", functools.partial(self._silent, "keras.utils.plot_model", None))
        found = (getattr(keras.callbacks, name, None) for name in CALLBACKS)
        self.classes.extend(cls for cls in found if isinstance(cls, type))
        for cls in self.classes:
            for name in [each for each in vars(cls) if each.startswith("on_")]:
                patch(cls, name, functools.partial(self._silent, cls.__name__, None))
            patch(cls, "set_model", functools.partial(self._set_model, keras.callbacks.Callback, cls.__name__))

    def install_matplotlib(self, figure):
        """Mute the saving of pictures."""
        patch(figure.Figure, "savefig", functools.partial(self._silent, "matplotlib savefig", None))

    def _silent(self, label, result, original):
        def watched(*args, **kwargs):
            self.names.add(label)
            return result

        return watched

    def _set_model(self, base, label, original):
        """Let a callback know its model without opening its log files."""

        def watched(callback, model):
            self.names.add(label)
            return base.set_model(callback, model)

        return watched

    def _writer(self, tf, original):
        def watched(*args, **kwargs):
            self.names.add("tf.summary.create_file_writer")
            return tf.summary.create_noop_writer()

        return watched

    def _cache(self, original):
        """Keep in memory what would begin a cache file: it would never become whole, and its lock would stay."""

        def watched(dataset, filename="", name=None):
            given = filename if isinstance(filename, (str, bytes, os.PathLike)) else ""
            named = os.fsdecode(os.fspath(given))
            if not named or os.path.exists(named + ".index"):
                return original(dataset, filename) if name is None else original(dataset, filename, name)
            self.names.add("Dataset.cache to a file")
            return original(dataset)

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
