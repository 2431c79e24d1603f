"""TFG106: several files, one reader; and one file, or none to wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

HEAD = """
import glob
import os
import tensorflow as tf


def parse(raw):
    return tf.io.parse_tensor(raw, tf.float32), 0.0


def decode(name):
    return tf.io.decode_png(tf.io.read_file(name)), 0.0


def flipped(name):
    return tf.image.random_flip_left_right(tf.io.decode_png(tf.io.read_file(name))), 0.0


auto = tf.data.AUTOTUNE
names = [f"part-{i}.tfrecord" for i in range(32)]
files = tf.data.Dataset.list_files("shards/*")
"""
TAIL = """
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds.batch(256).prefetch(auto), epochs=3)
"""


def found(analyse: Analyse, pipeline: str, tail: str = TAIL) -> list[Finding]:
    return analyse(f"{HEAD}ds = {pipeline}\n{tail}", None, ("serial-file-read",))


@pytest.mark.parametrize(
    "pipeline",
    [
        "tf.data.TFRecordDataset(names).map(parse, auto)",
        "tf.data.TFRecordDataset(['a', 'b']).map(parse, auto)",
        "tf.data.TFRecordDataset(files).map(parse, auto)",
        "tf.data.experimental.make_csv_dataset(os.path.join(os.environ['D'], 'r*.csv'), 64, label_name='y')",
        "tf.data.TFRecordDataset(glob.glob('d/*')[:8]).map(parse, auto)",
        "tf.data.TFRecordDataset(sorted(os.path.join('d', n) for n in os.listdir('d'))).map(parse, auto)",
        "tf.data.TextLineDataset(tf.io.gfile.glob('text/*'), num_parallel_reads=1)",
        "tf.data.FixedLengthRecordDataset([os.path.join('d', n) for n in os.listdir('d')], 64).map(parse, auto)",
        "files.interleave(tf.data.TFRecordDataset, cycle_length=4).map(parse, auto)",
        "files.interleave(lambda name: tf.data.TFRecordDataset(name).map(parse), num_parallel_calls=None)",
        "files.flat_map(tf.data.TFRecordDataset).map(parse, auto)",
        "tf.data.experimental.make_csv_dataset('rows/*.csv', 64, label_name='y', num_epochs=1)",
    ],
)
def test_several_files_and_one_reader(analyse: Analyse, pipeline: str) -> None:
    assert [finding.severity for finding in found(analyse, pipeline)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param("tf.data.TFRecordDataset('one.tfrecord').map(parse, auto)", id="one file"),
        pytest.param(
            "tf.data.TFRecordDataset(names, num_parallel_reads=auto).map(parse, auto)", id="parallel reads"
        ),
        pytest.param("tf.data.TFRecordDataset(names).map(parse, auto).cache()", id="cached"),
        pytest.param(
            "files.interleave(tf.data.TFRecordDataset, num_parallel_calls=4).map(parse, auto)", id="parallel"
        ),
        pytest.param("tf.data.TFRecordDataset(glob.glob('d/*')[0]).map(parse, auto)", id="one of several"),
        pytest.param("tf.data.TFRecordDataset(os.environ['DATA']).map(parse, auto)", id="unknown files"),
        pytest.param(
            "tf.data.Dataset.range(4).interleave(lambda i: tf.data.Dataset.range(8)).map(lambda v: (v, v))",
            id="memory",
        ),
        pytest.param("files.map(decode, auto)", id="parallel map"),
        pytest.param(
            "tf.data.experimental.make_csv_dataset('rows/*.csv', 64, num_parallel_reads=8, label_name='y')",
            id="parallel csv",
        ),
        pytest.param("files.map(flipped)", id="a stateful map is another rule's finding"),
    ],
)
def test_is_silent_on(analyse: Analyse, pipeline: str) -> None:
    assert found(analyse, pipeline) == []


def test_stateless_map_over_listed_files_is_repaired_by_the_runtime(analyse: Analyse) -> None:
    assert [finding.severity for finding in found(analyse, "files.map(decode)")] == [Severity.INFO]


def test_validation_is_info(analyse: Analyse) -> None:
    tail = TAIL.replace("fit(ds.batch(256).prefetch(auto),", "fit([1.0], [1.0], validation_data=ds.batch(256),")

    findings = found(analyse, "tf.data.TFRecordDataset(names).map(parse, auto)", tail)
    assert [finding.severity for finding in findings] == [Severity.INFO]


@pytest.mark.parametrize(
    ("pipeline", "safety"),
    [
        ("files.interleave(tf.data.TFRecordDataset).map(parse, auto)", "safe"),
        ("tf.data.TFRecordDataset(names).map(parse, auto)", "unsafe"),
        ("files.flat_map(tf.data.TFRecordDataset).map(parse, auto)", "unsafe"),
    ],
)
def test_fix_is_safe_where_order_stays(analyse: Analyse, pipeline: str, safety: str | None) -> None:
    (finding,) = found(analyse, pipeline)

    assert (finding.fix.safety if finding.fix else None) == safety


def test_reading_time_judges(rule: Callable[[str], Check]) -> None:
    check = rule("serial-file-read")
    reading = PipelineStage("Iterator::Root::Prefetch::Interleave", "Interleave", 9.0, 20, Spot("train.py", 9))
    batching = PipelineStage("Iterator::Root::Prefetch", "Prefetch", 1.0, 20)
    evidence = evidence_of(buckets={"input_wait": 5.0}, pipelines=(reading, batching))

    judged = check.judge(finding_at(check, 9, op="interleave"), evidence)

    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.45)


def test_make_csv_dataset_costs_what_all_of_its_stages_cost(rule: Callable[[str], Check]) -> None:
    check = rule("serial-file-read")
    stages = (
        PipelineStage("Iterator::Root::Map", "Map", 1.0, 20, Spot("train.py", 30)),
        PipelineStage("Iterator::Root::Map::ParallelMapV2", "ParallelMapV2", 0.0, 20, Spot("train.py", 9)),
        PipelineStage("Iterator::Root::Map::ParallelMapV2::Batch", "BatchV2", 3.0, 20, Spot("train.py", 9)),
    )
    evidence = evidence_of(buckets={"input_wait": 4.0}, pipelines=stages)
    judged = check.judge(finding_at(check, 9, op="make_csv_dataset"), evidence)
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.measures[0].value == pytest.approx(0.3)
