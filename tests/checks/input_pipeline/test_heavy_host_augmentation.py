"""What the page of heavy-host-augmentation does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

NAME = "heavy-host-augmentation"
TEXT = (
    "import tensorflow as tf\nimport tensorflow_addons as tfa\n\n"
    "def change(x, y):\n    return {}, y\n\n"
    "ds = tf.keras.utils.image_dataset_from_directory('photos', batch_size=64)\n"
    "ds = ds.map(change, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)\n"
    "model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
    "model.compile('adam', 'sparse_categorical_crossentropy')\n"
    "model.fit(ds)\n"
)


def test_functions_that_interpolate(analyse: Analyse) -> None:
    found = named(analyse(TEXT.format("tfa.image.rotate(x, 0.1)")), NAME)
    assert [(f.location.line, f.severity) for f in found] == [(8, Severity.INFO)]


def test_cheap_augmentation_is_fine(analyse: Analyse) -> None:
    for cheap in ("tf.image.random_flip_left_right(x)", "tf.image.random_brightness(x, 0.2)", "tf.image.rot90(x)"):
        assert named(analyse(TEXT.format(cheap)), NAME) == []


def test_layers_in_the_model_are_another_rule(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n\nds = tf.keras.utils.image_dataset_from_directory('photos', batch_size=64)\n"
        "model = tf.keras.Sequential([\n    tf.keras.Input((256, 256, 3)), tf.keras.layers.RandomRotation(0.2),\n"
        "    tf.keras.layers.Conv2D(64, 3), tf.keras.layers.GlobalAveragePooling2D(), "
        "tf.keras.layers.Dense(10)])\n"
        "model.compile('adam', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))\nmodel.fit(ds)\n"
    )
    assert named(analyse(text), NAME) == []


def stage(ms: float, line: int) -> PipelineStage:
    return PipelineStage(
        "Iterator::Root::Prefetch::ParallelMapV2", "ParallelMapV2", ms, 20, Spot("train.py", line)
    )


def test_judge_by_the_wait_for_input(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    buckets = {"input_wait": 6.0, "host": 4.0}
    judged = check.judge(finding_at(check, 8), evidence_of(10.0, buckets=buckets, pipelines=(stage(9.0, 8),)))
    assert judged is not None
    assert (judged.verdict, judged.severity) == (Verdict.CONFIRMED, Severity.WARNING)


def test_judge_blames_the_larger_stage(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    stages = (stage(1.0, 8), stage(9.0, 7))
    judged = check.judge(finding_at(check, 8), evidence_of(10.0, buckets={"input_wait": 6.0}, pipelines=stages))
    assert judged is not None
    assert judged.verdict is Verdict.MINOR


def test_judge_knows_nothing_of_an_unseen_stage(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    assert check.judge(finding_at(check, 8), evidence_of(10.0, buckets={"input_wait": 6.0})) is None
