"""A project with a bit of everything that a report tells, in several groups of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tflint_gpu.lint import cache

HEAD = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""
EAGER = (
    HEAD
    + 'model.compile("adam", "mse", run_eagerly=True)\nmodel.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), epochs=3)\n'
)
DATA = """\
import tensorflow as tf

def data():
    x = tf.zeros([1024, 8])
    return tf.data.Dataset.from_tensor_slices((x, x)).shuffle(1024).batch(256)
"""
TRAIN = f'from ours.data import data\n{HEAD}\nmodel.compile("adam", "mse")\nmodel.fit(data(), epochs=3)\n'


def notebook(*cells: str) -> str:
    """Return the text of a notebook with code `cells`."""
    listed = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
        for cell in cells
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the project, make its folder the current one and return it."""
    texts = {
        "requirements.txt": "tensorflow==2.10\n",
        "ours/__init__.py": "",
        "ours/data.py": DATA,
        "train.py": TRAIN,
        "eager.py": EAGER,
        "silent.py": EAGER.replace("epochs=3)", "epochs=3)  # tflint-gpu: ignore[TFG101]").replace(
            "run_eagerly=True)", "run_eagerly=True)  # tflint-gpu: ignore[TFG602]"
        ),
        "book.ipynb": notebook(EAGER, "%%bash\nls", "this is no Python"),
        "old.py": f"{EAGER}print 'x'\n",
        "binary.py": "tensorflow\0",
        "none.py": "print(1)\n",
    }
    folder = tmp_path / "project"
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TFLINT_GPU_DEBUG", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    # Whoever edits the program while its tests run changes its version.
    monkeypatch.setattr(cache, "version", lambda: "as tested")
    return folder
