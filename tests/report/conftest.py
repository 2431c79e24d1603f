"""Three sample reports that every format is rendered from: static, traced and of a notebook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tflint_gpu.checks.pages import Page, read_page
from tflint_gpu.findings import Change, Finding, Fix, Impact, Location, Measure, Related, Severity, Verdict
from tflint_gpu.program.target import Target
from tflint_gpu.report import Report, Texts
from tflint_gpu.source.texts import Error
from tflint_gpu.trace.evidence import (
    SCHEMA,
    Device,
    Environment,
    Evidence,
    Placement,
    Samples,
    Spot,
    Step,
    WhatIf,
    Window,
)

TRAIN = '''\
"""Trains on photos."""

import tensorflow as tf

from data import décode


def prepare(paths):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    ds = (
        ds.map(décode)  # slow
        .batch(32)
    )
    return ds


model = tf.keras.Sequential([tf.keras.layers.Resizing(224, 224, interpolation="bicubic")])
model.fit(prepare(["a.jpg"]))
'''

DATA = "import tensorflow as tf\n\ndef décode(path):\n\treturn tf.numpy_function(load, [path], tf.float32)\n"

CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Photos: 100 %"]},
    {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": ["%matplotlib inline\n", "import tensorflow as tf\n", "ds = ds.map(f)"],
    },
]

PAGE = """+++
code = "{code}"
name = "{name}"
severity = "{severity}"
phases = ["static", "trace"]
since = "0.1.0"
fix = "safe"
summary = "{summary}"
+++

# {name} ({code})

## What it does

Reports {name}
where it stands.

## Why the GPU waits

It has no work.
"""

RULES = {
    "input-pipeline/missing-prefetch": ("TFG101", "warning", "The dataset ends in a synchronous stage."),
    "input-pipeline/map-not-parallel": ("TFG102", "warning", "A map runs one element at a time."),
    "input-pipeline/python-op-in-map": ("TFG105", "warning", "A map runs Python under the GIL."),
    "layer-ops/cpu-only-op": ("TFG501", "error", "An op of the step has no GPU kernel."),
}


@pytest.fixture
def rules(tmp_path: Path) -> dict[str, Page]:
    """Four rules by code; their pages live in the test, so that real pages may change."""
    pages = {}
    for place, (code, severity, summary) in RULES.items():
        path = tmp_path / "pages" / f"{place}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = PAGE.format(code=code, name=path.stem, severity=severity, summary=summary)
        path.write_text(text, encoding="utf-8")
        pages[code] = read_page(path)
    return pages


@pytest.fixture
def texts(tmp_path: Path) -> Texts:
    """A project of two modules and a notebook."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(TRAIN, encoding="utf-8")
    (root / "data.py").write_text(DATA, encoding="utf-8")
    notebook = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (root / "photos.ipynb").write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
    return Texts(root)


@pytest.fixture
def finding(rules: dict[str, Page]) -> Callable[..., Finding]:
    """Make a finding of a rule at (path, line, column, end_line, end_column[, cell])."""

    def make(code: str, place: tuple[object, ...], message: str = "The GPU waits.", **parts: object) -> Finding:
        page = rules[code]
        severity = parts.pop("severity", page.severity)
        location = Location(*place)  # type: ignore[arg-type]
        return Finding(code, page.name, page.factor, severity, message, location, **parts)  # type: ignore[arg-type]

    return make


def evidence(texts: Texts | None = None, *, gpu: bool = True, **parts: object) -> Evidence:
    """Evidence of 20 steps, 61 % of which wait for input."""
    times = [40.0 + (step % 4) for step in range(20)]
    steps = tuple(
        Step(
            time,
            9.0 if gpu else None,
            8.0 if gpu else None,
            {"device_compute": 8.0, "input_wait": time - 16, "host_to_device": 1.0, "launch": 3.0, "unknown": 4.0},
        )
        for time in times
    )
    device = Device("NVIDIA H200", "gpu", traced=True) if gpu else Device("AMD EPYC", "cpu", traced=True)
    sources = {}
    if texts is not None:
        for path in ("train.py", "data.py", "photos.ipynb"):
            raw = texts.raw(path) or b""
            sources[path] = hashlib.blake2b(raw, digest_size=16).hexdigest()
    whole = Evidence(
        schema=SCHEMA,
        tool="tflint-gpu 0.1.0",
        made_at="2026-12-01T10:00:00Z",
        command=("train.py",),
        environment=Environment(tensorflow="2.21.0", keras="3.15.1", device=device),
        window=Window("fit", 10, 20, 41.2, 0.03, spot=Spot("train.py", 18)),
        steps=steps,
        sources=sources,
        what_if=(
            WhatIf("cached-batch", 17.0, 41.2, 2.42, 3, 0.04, 2.33, 2.52),
            WhatIf("xla", 41.0, 41.2, 1.005, 5, 0.03, 0.975, 1.035),
        ),
        placements=(
            Placement("ResizeBicubic", 1, "cpu", True, Spot("train.py", 17), 2.5, reason="no GPU kernel"),
            Placement("Conv2D", 8, "gpu", False, Spot("train.py", 17), 4.0),
        ),
        samples=Samples(120, 0.22, 3 * 2**30, 139 * 2**30, 210.0),
        muted=("ModelCheckpoint",),
        notes=("The script was stopped after the window.",),
    )
    return replace(whole, **parts)  # type: ignore[arg-type]


@pytest.fixture
def samples(
    rules: dict[str, Page], texts: Texts, finding: Callable[..., Finding]
) -> dict[str, Callable[[], Report]]:
    """The three reports, by name."""
    prefetch = Fix(
        "safe",
        "append .prefetch(tf.data.AUTOTUNE)",
        (
            Change(
                "append-method",
                Location("train.py", 11, 9, 12, 19),
                (("argument", "{tensorflow.data.AUTOTUNE}"), ("method", "prefetch")),
            ),
        ),
    )
    parallel = Fix(
        "unsafe",
        "pass num_parallel_calls=tf.data.AUTOTUNE",
        (
            Change(
                "add-argument",
                Location("photos.ipynb", 3, 6, 3, 15, 2),
                (("name", "num_parallel_calls"), ("value", "{tensorflow.data.AUTOTUNE}")),
            ),
        ),
    )
    ends = finding(
        "TFG101",
        ("train.py", 11, 9, 12, 19),
        "Nothing makes the next batch while the step runs, so the GPU waits for each: append a prefetch.",
        qualname="prepare",
        related=(Related(Location("train.py", 18, 1), "this fit draws from it"),),
        fix=prefetch,
    )
    python = finding(
        "TFG105",
        ("data.py", 4, 9, 4, 56),
        "Every sample runs Python under the GIL: 50 % of two cores idle, and the GPU too.\nUse TensorFlow's ops.",
        qualname="décode",
    )
    hint = finding("TFG102", ("train.py", 11, 9, 11, 23), severity=Severity.HINT, qualname="prepare")
    in_cell = finding("TFG102", ("photos.ipynb", 3, 6, 3, 15, 2), fix=parallel)

    def report(*findings: Finding, **parts: object) -> Report:
        target = Target((2, 10), (2, 10), source="requirements.txt")
        return Report(findings, tuple(rules.values()), target, 3, texts=texts, **parts)  # type: ignore[arg-type]

    def static() -> Report:
        errors = (Error("old.py", 3, "not Python 3: Missing parentheses; convert it or exclude it"),)
        return report(ends, python, hint, errors=errors, suppressed=(replace(hint, code="TFG101"),))

    def traced() -> Report:
        measured = (Measure("input_wait_share", 0.61), Measure("python_time", 22.25, "ms"))
        impact = Impact(0.587, "what-if: cached batch")
        proven = python.with_verdict(Verdict.CONFIRMED, evidence=measured, impact=impact)
        masked = ends.with_verdict(Verdict.MASKED, evidence=(Measure("input_wait_share", 0.61),))
        op = finding(
            "TFG501",
            ("train.py", 17, 30, 17, 89),
            "ResizeBicubic has no GPU kernel: predicted to run on the CPU and to copy its images both ways.",
            verdict=Verdict.MINOR,
            severity=Severity.INFO,
        )
        return report(proven, op, masked, evidence=evidence(texts))

    def notebook() -> Report:
        return report(in_cell, notes=("photos.ipynb: cell 1 was left out",))

    return {"static": static, "traced": traced, "notebook": notebook}
