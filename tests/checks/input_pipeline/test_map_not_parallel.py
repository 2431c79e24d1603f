"""TFG102: which functions stay serial, and what the rewritten chain says of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot, WhatIf

PROGRAM = """
import argparse
import numpy as np
import tensorflow as tf

scale = tf.keras.layers.Rescaling(1 / 255)
norm = tf.keras.layers.Normalization()
words = tf.keras.layers.TextVectorization()
flip = tf.keras.layers.RandomFlip()
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [0]), -1)
offset = tf.Variable(1.0)
net = tf.keras.Sequential([tf.keras.layers.Dense(8)])
parser = argparse.ArgumentParser()
parser.add_argument("--parallel", type=int, default=1)
args = parser.parse_args()


def train(x, y):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    {pipeline}
    ds = ds.batch(256).prefetch(tf.data.AUTOTUNE)
    model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(ds, epochs=3)
"""


def found(analyse: Analyse, pipeline: str, tensorflow: str = "2.21") -> list[Finding]:
    return analyse(PROGRAM.format(pipeline=pipeline), tensorflow, ("map-not-parallel",))


@pytest.mark.parametrize(
    "body",
    [
        "tf.image.random_contrast(tf.image.resize(a, (64, 64)), 0.7, 1.3)",
        "tf.image.random_crop(a, (64, 64, 3))",
        "flip(a, training=True)",
        "words(a)",
        "table.lookup(tf.strings.lower(a))",
        "net(a)",
        "tf.numpy_function(np.sort, [a], tf.float32)",
        "tf.sqrt(a) * offset",
        "tf.nn.relu(a) + keras_noise(a)",
    ],
)
def test_stateful_functions_stay_serial(analyse: Analyse, body: str) -> None:
    pipeline = f"keras_noise = lambda t: tf.keras.random.normal((8,))\n    ds = ds.map(lambda a, b: ({body}, b))"

    assert [finding.severity for finding in found(analyse, pipeline)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "body",
    [
        "tf.io.decode_jpeg(tf.io.read_file(a), channels=3)",
        "tf.image.stateless_random_flip_left_right(a, seed=(1, 2))",
        "tf.random.stateless_normal((8,), seed=(1, 2)) + tf.sqrt(a)",
        "scale(tf.image.resize(a, (64, 64)))",
        "norm(tf.image.resize(a, (64, 64)))",
        "tf.strings.split(a)",
        "flip(tf.image.resize(a, (64, 64)), training=False)",
    ],
)
def test_runtime_parallelises_stateless_functions(analyse: Analyse, body: str) -> None:
    findings = found(analyse, f"ds = ds.map(lambda a, b: ({body}, b))")

    assert [finding.severity for finding in findings] == [Severity.HINT]


def test_old_tensorflow_parallelises_nothing(analyse: Analyse) -> None:
    pipeline = "ds = ds.map(lambda a, b: (tf.io.decode_jpeg(tf.io.read_file(a)), b))"

    (finding,) = found(analyse, pipeline, tensorflow="2.4")
    assert finding.severity is Severity.WARNING
    assert finding.fix is not None
    assert finding.fix.safety == "safe"


def test_tuple_reorder_costs_nothing(analyse: Analyse) -> None:
    assert found(analyse, "ds = ds.map(lambda a, b: (b, tf.cast(a, tf.float32)))", tensorflow="2.4") == []


def test_a_little_noise_is_info(analyse: Analyse) -> None:
    (finding,) = found(analyse, "ds = ds.map(lambda a, b: (a + tf.random.normal([64]), b))")

    assert finding.severity is Severity.INFO


def test_behind_a_cache_it_runs_once(analyse: Analyse) -> None:
    pipeline = "ds = ds.map(lambda a, b: (table.lookup(tf.strings.lower(a)), b)).cache()"

    assert [finding.severity for finding in found(analyse, pipeline)] == [Severity.INFO]


def test_default_of_the_command_line_lowers_the_voice(analyse: Analyse) -> None:
    pipeline = "ds = ds.map(lambda a, b: (words(a), b), num_parallel_calls=args.parallel)"

    (finding,) = found(analyse, pipeline)
    assert finding.severity is Severity.INFO
    assert finding.fix is None


@pytest.mark.parametrize("value", ["tf.data.AUTOTUNE", "tf.data.experimental.AUTOTUNE", "-1", "4", "unknown()"])
def test_parallel_or_unknown_calls_are_left_alone(analyse: Analyse, value: str) -> None:
    assert found(analyse, f"ds = ds.map(lambda a, b: (words(a), b), num_parallel_calls={value})") == []


def test_debug_switch_is_left_alone(analyse: Analyse) -> None:
    pipeline = """
    debug = False
    def body(a, b):
        if debug:
            tf.print(a)
        return tf.sqrt(a), b
    ds = ds.map(body)"""

    assert all(finding.severity is Severity.HINT for finding in found(analyse, pipeline))


def test_nested_in_flat_map_stays_serial(analyse: Analyse) -> None:
    inner = "tf.data.Dataset.from_tensor_slices(tf.expand_dims(a, 0)).map(lambda c: tf.image.resize(c, (8, 8)))"

    (finding,) = found(analyse, f"ds = ds.flat_map(lambda a, b: {inner})")
    assert finding.severity is Severity.WARNING
    assert "flat_map" in finding.message


def test_nested_in_parallel_interleave_costs_nothing(analyse: Analyse) -> None:
    inner = "tf.data.Dataset.from_tensor_slices(tf.expand_dims(a, 0)).map(lambda c: tf.image.resize(c, (8, 8)))"

    assert found(analyse, f"ds = ds.interleave(lambda a, b: {inner}, num_parallel_calls=tf.data.AUTOTUNE)") == []


def test_both_sides_of_a_zip_are_at_the_top(analyse: Analyse) -> None:
    pipeline = """
    masks = ds.map(lambda a, b: tf.image.random_flip_up_down(a))
    ds = tf.data.Dataset.zip((ds, masks))"""

    (finding,) = found(analyse, pipeline)
    assert "random_flip_up_down" in finding.message


def test_random_functions_get_an_unsafe_fix(analyse: Analyse) -> None:
    (finding,) = found(analyse, "ds = ds.map(lambda a, b: (tf.image.random_flip_left_right(a), b))")

    assert finding.fix is not None
    assert finding.fix.safety == "unsafe"


def test_adapting_a_layer_is_one_pass(analyse: Analyse) -> None:
    assert found(analyse, "words.adapt(ds.map(lambda a, b: tf.strings.lower(a) + tf.as_string(offset)))") == []


def stage(op: str, self_ms: float, line: int | None) -> PipelineStage:
    spot = Spot("train.py", line) if line else None
    return PipelineStage(f"Iterator::Root::Prefetch::{op}", op, self_ms, 20, spot)


@pytest.mark.parametrize(
    ("op", "stateful", "verdict"),
    [
        ("ParallelMapV2", True, Verdict.MASKED),
        ("MapAndBatch", False, Verdict.MASKED),
        ("MapAndBatch", True, Verdict.CONFIRMED),
        ("Map", False, Verdict.CONFIRMED),
    ],
)
def test_rewritten_stage_judges(rule: Callable[[str], Check], op: str, stateful: bool, verdict: Verdict) -> None:
    check = rule("map-not-parallel")
    pipelines = (stage(op, 8.0, 12), stage("Shuffle", 2.0, 11))
    evidence = evidence_of(gpu=True, buckets={"input_wait": 6.0, "device_compute": 4.0}, pipelines=pipelines)

    judged = check.judge(finding_at(check, 12, stateful=stateful), evidence)

    assert judged is not None
    assert judged.verdict is verdict
    if verdict is Verdict.CONFIRMED:
        assert judged.impact is not None
        assert judged.impact.step_share == pytest.approx(0.6 * 0.8)


def test_free_input_that_gains_nothing_refutes(rule: Callable[[str], Check]) -> None:
    check = rule("map-not-parallel")
    cached = WhatIf("cached-batch", 10.0, 10.0, 1.0, 3, 0.01, 0.99, 1.01)
    evidence = evidence_of(
        gpu=True, buckets={"input_wait": 6.0}, pipelines=(stage("Map", 8.0, 12),), what_if=(cached,)
    )

    judged = check.judge(finding_at(check, 12, stateful=True), evidence)

    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_long_step_of_a_cpu_refutes_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("map-not-parallel")
    evidence = evidence_of(buckets={"input_wait": 0.1}, pipelines=(stage("Map", 8.0, 12),))

    judged = check.judge(finding_at(check, 12, stateful=True), evidence)

    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert judged.measures


def test_map_of_microseconds_is_minor_on_any_machine(rule: Callable[[str], Check]) -> None:
    check = rule("map-not-parallel")
    evidence = evidence_of(buckets={"input_wait": 0.1}, pipelines=(stage("Map", 0.01, 12),))

    judged = check.judge(finding_at(check, 12, stateful=True), evidence)

    assert judged is not None
    assert judged.verdict is Verdict.MINOR


def test_two_maps_without_lines_cannot_be_told_apart(rule: Callable[[str], Check]) -> None:
    check = rule("map-not-parallel")
    evidence = evidence_of(
        gpu=True, buckets={"input_wait": 6.0}, pipelines=(stage("Map", 8.0, None), stage("Map", 1.0, None))
    )

    assert check.judge(finding_at(check, 12, stateful=True), evidence) is None
