"""What the page of shuffle-buffer-stall does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict

NAME = "shuffle-buffer-stall"
HEAD = (
    "import glob\nimport tensorflow as tf\n\n"
    "files = glob.glob('photos/*.jpg')\n\n"
    "def read(path):\n"
    "    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)\n"
    "    return tf.image.resize(image, (224, 224))\n\n"
    "ds = tf.data.Dataset.from_tensor_slices(files)\n"
)
READ = ".map(read, num_parallel_calls=tf.data.AUTOTUNE)"
TAIL = (
    ".batch(64).prefetch(2)\n"
    "model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
    "model.compile('adam', 'mse')\nmodel.fit(ds)\n"
)


def told(analyse: Analyse, chain: str) -> list[str]:
    return [finding.message for finding in named(analyse(f"{HEAD}ds = ds{chain}{TAIL}"), NAME)]


def test_buffer_as_long_as_the_data_set(analyse: Analyse) -> None:
    (message,) = told(analyse, f"{READ}.shuffle(len(files))")
    assert "all files" in message


def test_size_is_told_where_the_picture_is_known(analyse: Analyse) -> None:
    (message,) = told(analyse, f"{READ}.shuffle(1000)")
    assert "602 MB" in message


def test_small_buffer_is_fine(analyse: Analyse) -> None:
    assert told(analyse, f".shuffle(len(files)){READ}.shuffle(100)") == []


def test_cached_pictures_are_in_memory(analyse: Analyse) -> None:
    assert told(analyse, f"{READ}.cache().shuffle(5000)") == []


def test_serialized_records_are_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "ds = tf.data.TFRecordDataset(files, num_parallel_reads=8).shuffle(10_000)\n"
        "ds = ds.map(lambda r: tf.io.decode_jpeg(r), num_parallel_calls=tf.data.AUTOTUNE)" + TAIL
    )
    assert named(analyse(text), NAME) == []


def test_validation_is_not_shuffled_before_steps(analyse: Analyse) -> None:
    text = f"{HEAD}ds = ds{READ}.shuffle(1000)" + TAIL.replace("model.fit(ds)", "model.evaluate(ds)")
    assert named(analyse(text), NAME) == []


@pytest.mark.parametrize(
    ("first", "verdict", "severity"),
    [(210.0, Verdict.CONFIRMED, Severity.WARNING), (20.0, Verdict.CONFIRMED, None), (11.0, Verdict.MINOR, None)],
)
def test_judged_by_the_first_step_of_an_epoch(
    rule: Callable[[str], Check], first: float, verdict: Verdict, severity: Severity | None
) -> None:
    check = rule("shuffle-buffer-stall")
    evidence = evidence_of(step_ms=10.0, facts={"epoch_start_ms": first, "epoch_steps": 20})
    judged = check.judge(finding_at(check, 7), evidence)
    assert judged is not None
    assert (judged.verdict, judged.severity) == (verdict, severity)
    assert judged.measures[0].value == pytest.approx((first - 10.0) / (first + 190.0), abs=1e-4)


def test_one_epoch_tells_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("shuffle-buffer-stall")
    assert check.judge(finding_at(check, 7), evidence_of(step_ms=10.0)) is None


@pytest.mark.parametrize(("dtype", "count"), [("tf.float32", 1), ("tf.uint8", 0)])
def test_size_of_records_that_are_given_a_shape(analyse: Analyse, dtype: str, count: int) -> None:
    text = HEAD + (
        "def parse(r):\n"
        f"    return tf.reshape(tf.io.decode_raw(r, {dtype}), (64, 128, 128, 1))\n"
        "ds = tf.data.TFRecordDataset(files, num_parallel_reads=8)\n"
        "ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE).shuffle(300)" + TAIL
    )
    assert len(named(analyse(text), NAME)) == count
