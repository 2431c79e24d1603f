from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot, WhatIf

RULE = "missing-cache"


def script(
    body: str, source: str = "list_files('photos/*.jpg')", after: str = "", epochs: str = ", epochs=9"
) -> str:
    """Training on pictures that `body` makes of a file name."""
    return (
        "import tensorflow as tf\n"
        f"def load(path):\n    {body}\n    return picture, 1.0\n"
        f"ds = tf.data.Dataset.{source}\n"
        "ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)\n"
        f"{after}ds = ds.batch(64).prefetch(2)\n"
        "model = tf.keras.applications.MobileNetV2(weights=None)\n"
        'model.compile("adam", "mse")\n'
        f"model.fit(ds{epochs})\n"
    )


DECODE = "picture = tf.io.decode_jpeg(tf.io.read_file(path))"


def test_stands_at_the_last_deterministic_map(analyse: Analyse) -> None:
    text = script(DECODE, after="ds = ds.map(lambda x, y: (tf.image.resize(x, [64, 64]), y))  # here\n")
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.INFO
    assert finding.location.line == line_of(text, "# here")


@pytest.mark.parametrize(
    "text",
    [
        script(DECODE, epochs=""),
        script(DECODE, epochs=", epochs=unheard_of()"),
        script(DECODE, after="ds = ds.cache()\n"),
        script(DECODE, after="ds = ds.snapshot('kept')\n"),
        script(DECODE + "\n    picture = tf.image.random_flip_left_right(picture)"),
        script(DECODE + "\n    picture = tf.image.stateless_random_flip_left_right(picture, [1, 2])"),
        script("picture = unheard_of(path)"),
        script("picture = tf.cast(path, tf.float32)", source="from_tensor_slices(tf.zeros([99, 8]))"),
    ],
    ids=["one epoch", "unknown epochs", "cached", "snapshot", "random", "stateless random", "unknown", "cheap"],
)
def test_silent(analyse: Analyse, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_silent_for_data_sets_that_cache_themselves(analyse: Analyse) -> None:
    text = script(DECODE).replace(
        "ds = tf.data.Dataset.list_files('photos/*.jpg')",
        "import tensorflow_datasets as tfds\nds = tfds.load('cats_vs_dogs', split='train')",
    )
    assert named(analyse(text), RULE) == []


def test_python_in_the_map_is_worth_keeping(analyse: Analyse) -> None:
    text = script("picture = tf.numpy_function(len, [path], tf.float32)")
    assert len(named(analyse(text), RULE)) == 1


def test_silent_where_pictures_are_resized_before_the_crop(analyse: Analyse) -> None:
    body = f"{DECODE}\n    picture = tf.image.resize(picture, [99, 99])"
    body += "\n    picture = tf.image.random_crop(picture, [9, 9, 3])"
    assert named(analyse(script(body)), RULE) == []


STAGES = (
    PipelineStage("Iterator::Root::Prefetch::ParallelMapV2", "ParallelMapV2", 8.0, 20, Spot("train.py", 6)),
    PipelineStage("Iterator::Root::Prefetch", "Prefetch", 2.0, 20),
)


@pytest.mark.parametrize(("wait", "verdict"), [(5.0, Verdict.CONFIRMED), (0.2, Verdict.MINOR)])
def test_judged_by_its_part_of_the_wait(rule: Callable[[str], Check], wait: float, verdict: Verdict) -> None:
    check = rule(RULE)
    evidence = evidence_of(buckets={"input_wait": wait, "host": 10.0 - wait}, pipelines=STAGES)
    judged = check.judge(finding_at(check, 6), evidence)

    assert judged is not None
    assert judged.verdict is verdict
    assert check.judge(finding_at(check, 6), evidence_of()) is None


def test_judged_by_the_run_with_a_cache(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    gain = WhatIf("cache", 5.0, 10.0, 2.0, 3, 0.1, 1.9, 2.1)
    judged = check.judge(finding_at(check, 6), evidence_of(what_if=(gain,)))

    assert judged is not None
    assert (judged.verdict, judged.severity) == (Verdict.CONFIRMED, Severity.WARNING)
