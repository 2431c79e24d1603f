"""Reading projects that live in the test alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tflint_gpu.config import Settings
from tflint_gpu.program.build import build
from tflint_gpu.program.values import Const, Dataset, Value
from tflint_gpu.program.views import Pipeline, Program
from tflint_gpu.source.discovery import discover

Read = Callable[..., Program]

#: What most programs here begin with: a fed dataset and a model.
HEAD = """\
import tensorflow as tf

x = tf.zeros([4096, 8])
base = tf.data.Dataset.from_tensor_slices((x, x))
model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return a function from files (name → text, or the text of ``train.py`` alone) to the one program they make.

    A notebook is given as the list of its code cells. `head` puts `HEAD` before every file that trains.
    `program_of` is the file whose program is wanted where there are several.
    """

    def made(
        files: dict[str, str | list[str]] | str,
        *,
        tensorflow: str | None = "2.21",
        head: bool = True,
        program_of: str = "train",
    ) -> Program:
        monkeypatch.chdir(tmp_path)
        for name, text in ({"train.py": files} if isinstance(files, str) else files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            start = HEAD if head and "train" in name else ""
            if isinstance(text, list):
                path.write_text(notebook(start, *text), encoding="utf-8")
            else:
                path.write_text(start + text, encoding="utf-8")
        settings = Settings(tensorflow=tensorflow)
        built = build(list(discover(["."], settings)), settings, ())
        fatal = [str(error) for error in built.errors if error.fatal]
        assert fatal == []
        return next(
            program for program in built.programs if any(program_of in module.path for module in program.modules)
        )

    return made


def notebook(*cells: str) -> str:
    """Return the text of a notebook with these code cells."""
    code = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
        for cell in cells
    ]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def ops(pipeline: Pipeline | Dataset | None) -> list[str]:
    """Return the ops of a pipeline from source to end; one that a branch may skip ends in ``?``."""
    assert pipeline is not None
    return [stage.op + ("?" if stage.conditional else "") for stage in pipeline.stages]


def trained(program: Program) -> list[list[str]]:
    """Return the ops of the pipeline of every training run, [] for a run whose data are not known."""
    return [ops(run.pipeline) if run.pipeline else [] for run in program.runs]


def sizes(program: Program) -> list[object]:
    """Return the literal batch size of every training pipeline, None where it is not known."""
    return [
        plain(stage.call.argument("batch_size"))
        for run in program.runs
        if run.pipeline
        for _, stage in run.pipeline.stages_of("batch")
    ]


def plain(value: Value | None) -> object:
    """Return the literal behind `value`, None where there is none."""
    return value.value if isinstance(value, Const) else None
