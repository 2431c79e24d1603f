"""Tests of image-decode-slow beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Location, Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

RULE = "image-decode-slow"


def of(
    analyse: Analyse, body: str, source: str = 'tf.data.Dataset.list_files("*.jpg")', behind: str = ""
) -> list[Severity]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    code = f"""\
import tensorflow as tf

def read(x, y=1.0):
{lines}
ds = {source}.map(read, num_parallel_calls=tf.data.AUTOTUNE){behind}.batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


JPEG = "x = tf.io.decode_jpeg(tf.io.read_file(x), channels=3)\n"

CASES = {
    "bounding box": (JPEG + "return tf.image.crop_to_bounding_box(x, 0, 0, 9, 9), y", [Severity.INFO]),
    "decode_image": ("x = tf.io.decode_image(tf.io.read_file(x))\nreturn x, y", [Severity.HINT]),
    "downscaled": (JPEG + "return tf.image.resize(x, (128, 128)), y", [Severity.HINT]),
    "downscaled with ratio": (JPEG.replace("=3", "=3, ratio=4") + "return tf.image.resize(x, (128, 128)), y", []),
    "large resize": (JPEG + "return tf.image.resize(x, (512, 512)), y", []),
    "random crop is missing-cache's": (JPEG + "return tf.image.random_crop(x, (9, 9, 3)), y", []),
    "antialias": (JPEG + "return tf.image.resize(x, (512, 512), antialias=True), y", [Severity.HINT]),
    "lanczos": (JPEG + "return tf.image.resize(x, (512, 512), method='lanczos3'), y", [Severity.HINT]),
    "method not known": (JPEG + "return tf.image.resize(x, (512, 512), method=chosen()), y", []),
    "twice": (
        JPEG + "x = tf.image.resize(x, (600, 600))\nx = tf.image.resize(x, (512, 512))\nreturn x, y",
        [Severity.INFO],
    ),
    "a smaller copy beside": (
        JPEG + "big = tf.image.resize(x, (600, 600))\nsmall = tf.image.resize(big, (300, 300))\nreturn small, big",
        [],
    ),
    "crop between": (
        JPEG + "x = tf.image.resize(x, (600, 600))\nx = tf.image.central_crop(x, 0.5)\n"
        "x = tf.image.resize(x, (512, 512))\nreturn x, y",
        [],
    ),
    "png": ("return tf.io.decode_png(tf.io.read_file(x)), y", []),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_decoding(body: str, expected: list[Severity], analyse: Analyse) -> None:
    assert of(analyse, body) == expected


def test_is_silent_on_what_a_cache_keeps(analyse: Analyse) -> None:
    body = JPEG + "return tf.image.crop_to_bounding_box(x, 0, 0, 9, 9), y"
    assert of(analyse, body, behind=".cache()") == []


def test_loader_resizes_already(analyse: Analyse) -> None:
    loader = 'tf.keras.utils.image_dataset_from_directory("photos", image_size=(256, 256))'
    assert of(analyse, "return tf.image.resize(x, (512, 512)), y", loader) == [Severity.INFO]
    assert of(analyse, "return tf.image.resize(x, (512, 512)), x", loader) == []


def test_part_of_the_map_decides(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    found = finding_at(check, 4, stage=Location("train.py", 6, 1))
    stage = PipelineStage("Iterator::Root::ParallelMapV2", "ParallelMapV2", 30.0, 20, Spot("train.py", 6))
    waits = {"device_compute": 6.0, "input_wait": 4.0}
    judged = check.judge(found, evidence_of(10.0, gpu=True, pipelines=(stage,), buckets=waits))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert check.judge(found, evidence_of(10.0, gpu=True, buckets=waits)) is None
