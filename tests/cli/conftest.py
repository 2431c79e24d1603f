"""Files in a folder, ``check`` run over them, and what it said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tflint_gpu.cli import invoke

#: The loss prints, so that the switch cannot go by itself.
EAGER = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", lambda y, p: print(y) or tf.abs(y - p), run_eagerly=True)
model.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), batch_size=32, epochs=3)
"""
SERIAL = """\
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((tf.zeros([1024, 8]), tf.zeros([1024, 1])))
ds = ds.shuffle(1024).batch(256)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
#: Two rules whose findings in the texts above are plain, so that other rules may come and go.
TWO = ("--isolated", "--select", "run-eagerly-enabled,missing-prefetch", "--tensorflow", "2.10")

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Write files, run ``check`` in their folder, return status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TFLINT_GPU_DEBUG", raising=False)

    def call(*arguments: str, **files: str) -> tuple[int, str, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        status = invoke(["check", *arguments])
        return status, *capsys.readouterr()

    return call


def places(check: Check, *arguments: str, **files: str) -> list[tuple[str, str, int]]:
    report = json.loads(check(*TWO, "--output-format", "json", *arguments, **files)[1])
    return [(finding["name"], finding["path"], finding["line"]) for finding in report["findings"]]
