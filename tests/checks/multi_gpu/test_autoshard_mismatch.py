from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, WhatIf
from tflint_gpu.trace.usage import HostUse

Rule = Callable[[str], Check]
RULE = "autoshard-mismatch"

HEAD = """\
import tensorflow as tf

strategy = tf.distribute.{strategy}()

def load(name):
    return tf.io.decode_jpeg(tf.io.read_file(name), channels=3), 0

def rows():
    for index in range(100000):
        yield [float(index)] * 8, 0.0

def policy(ds, wanted):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = wanted
    return ds.with_options(options)

POLICY = tf.data.experimental.AutoShardPolicy
arrays = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096])))
generated = tf.data.Dataset.from_generator(rows, output_types=(tf.float32, tf.float32))
names = tf.data.Dataset.list_files("images/*.jpg")
parts = tf.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"])
one = tf.data.TFRecordDataset("all.tfrecord")
"""

TAIL = """
with strategy.scope():
    model = tf.keras.applications.ResNet50(weights=None, classes=10)
    model.compile("adam", "sparse_categorical_crossentropy")
model.fit(ds, epochs=10)
"""


def _told(
    analyse: Analyse, ds: str, strategy: str = "MultiWorkerMirroredStrategy", tail: str = TAIL
) -> list[tuple[int, Severity]]:
    text = HEAD.format(strategy=strategy) + f"ds = {ds}\n" + tail
    return [(finding.location.line, finding.severity) for finding in named(analyse(text), RULE)]


@pytest.mark.parametrize(
    ("ds", "place"),
    [
        ("generated.batch(64)", r"generated ="),
        ("names.map(load).batch(64)", r"names ="),
        ("policy(names.map(load).batch(64), POLICY.DATA)", r"names ="),
        ("policy(parts.map(lambda r: tf.io.decode_jpeg(r)).batch(64), POLICY.DATA)", r"parts ="),
        ("tf.keras.utils.image_dataset_from_directory('images')", r"ds ="),
        ("one.batch(64)", r"one ="),
        ("policy(names.map(load).batch(64), POLICY.FILE)", r"auto_shard_policy ="),
        ("policy(parts.batch(64), POLICY.OFF)", r"auto_shard_policy ="),
        ("policy(parts.shuffle(100, seed=3).batch(64), POLICY.OFF)", r"auto_shard_policy ="),
    ],
)
def test_what_the_runtime_cannot_share_out(analyse: Analyse, ds: str, place: str) -> None:
    text = HEAD.format(strategy="") + f"ds = {ds}\n"
    assert _told(analyse, ds) == [(line_of(text, place), Severity.WARNING)]


@pytest.mark.parametrize(
    ("ds", "reason"),
    [
        ("arrays.batch(64)", "slices of arrays cost nothing to skip"),
        ("arrays.map(lambda x, y: (x / 255.0, y)).batch(64)", "little work a sample"),
        ("parts.batch(64)", "shared out by files"),
        ("names.interleave(tf.data.TFRecordDataset).batch(64)", "shared out by files"),
        ("policy(one.map(lambda r: tf.io.decode_jpeg(r)).batch(64), POLICY.DATA)", "no other way for one file"),
        ("names.shard(2, 0).map(load).batch(64)", "sharded early"),
        ("names.map(load).shard(2, 0).batch(64)", "split-after-decode tells a late shard"),
        ("names.map(load).cache().batch(64)", "made once"),
        ("policy(parts.shuffle(100).batch(64), POLICY.OFF)", "another order on each worker"),
        ("policy(generated.batch(64), unheard_of)", "unknown policy"),
        ("unheard_of(names).map(load).batch(64)", "unknown source"),
    ],
)
def test_silent(analyse: Analyse, ds: str, reason: str) -> None:
    assert _told(analyse, ds) == [], reason


def test_one_machine_shards_nothing(analyse: Analyse) -> None:
    assert _told(analyse, "names.map(load).batch(64)", "MirroredStrategy") == []


def test_a_dataset_function_is_the_programs_own_way(analyse: Analyse) -> None:
    tail = TAIL.replace("fit(ds,", "fit(strategy.distribute_datasets_from_function(lambda context: ds),")
    assert _told(analyse, "names.map(load).batch(64)", tail=tail) == []


LOOP = """
with strategy.scope():
    model = tf.keras.applications.ResNet50(weights=None, classes=10)
    optimizer = tf.keras.optimizers.Adam()

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

@tf.function
def distributed(x, y):
    strategy.run(step, args=(x, y))

for epoch in range(10):
    for x, y in strategy.experimental_distribute_dataset(ds):
        distributed(x, y)
"""


def test_a_loop_of_ones_own(analyse: Analyse) -> None:
    told = _told(analyse, "names.map(load).batch(64)", tail=LOOP)
    assert told == [(line_of(HEAD.format(strategy=""), "names ="), Severity.WARNING)]


def _evidence(replicas: int, *runs: WhatIf) -> Evidence:
    buckets = {"input_wait": 4.0, "device_compute": 6.0}
    return evidence_of(gpu=True, buckets=buckets, facts={"replicas": replicas}, what_if=runs)


@pytest.mark.parametrize(
    ("evidence", "wastes", "verdict"),
    [
        (_evidence(2), True, Verdict.CONFIRMED),
        (_evidence(2, WhatIf("cached-batch", 10.0, 10.0, 1.0, 3, 0.01, 0.99, 1.01)), True, Verdict.REFUTED),
        (_evidence(1), True, None),
        (_evidence(2), False, None),
    ],
    ids=["two workers wait for input", "free input gains nothing", "one worker", "a run that fails"],
)
def test_only_several_workers_can_show_the_waste(
    rule: Rule, evidence: Evidence, wastes: bool, verdict: Verdict | None
) -> None:
    check = rule(RULE)
    judgement = check.judge(finding_at(check, 3, wastes=wastes), evidence)
    assert (judgement.verdict if judgement else None) is verdict


def test_half_of_the_wait_is_the_other_workers(rule: Rule) -> None:
    check = rule(RULE)
    judgement = check.judge(finding_at(check, 3, wastes=True), _evidence(2))
    assert judgement is not None
    assert judgement.impact is not None
    assert judgement.impact.step_share == pytest.approx(0.2)


def _workers(thrown_ms: float | None, waiting: float = 4.0, gpu: bool = True) -> Evidence:
    shards = None if thrown_ms is None else 4
    hosts = tuple(HostUse(name, 9, 10.0, 0.0, waiting, 1.0, shards, thrown_ms) for name in ("a:1", "b:1"))
    return evidence_of(gpu=gpu, buckets={"input_wait": waiting, "device_compute": 10 - waiting}, hosts=hosts)


def test_profiles_of_workers_show_what_they_throw_away(rule: Rule) -> None:
    check = rule(RULE)
    (finding,) = check.observe(_workers(2.0))
    assert finding.verdict is Verdict.OBSERVED
    assert "each of 4 workers makes all elements" in finding.message
    assert finding.impact is not None
    # Three quarters of the wait would be 30 %; the work that is thrown away takes 20 % of the step.
    assert finding.impact.step_share == pytest.approx(0.2)
    judgement = check.judge(finding_at(check, 3, wastes=True), _workers(2.0))
    assert judgement is not None
    assert judgement.verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    "evidence",
    [_workers(None), _workers(0.1), _workers(2.0, waiting=0.0), _workers(2.0, waiting=0.0, gpu=False)],
    ids=["no sharing seen", "names of files only", "input is ahead", "input is ahead of a CPU"],
)
def test_workers_that_lose_nothing(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []
