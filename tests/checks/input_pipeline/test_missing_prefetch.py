"""TFG101: what ends a pipeline, on which version, and what the rewritten chain says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import PipelineStage, Spot

HEAD = """
import tensorflow as tf

x, y = tf.zeros([4096, 64]), tf.zeros([4096])
ds = tf.data.Dataset.from_tensor_slices((x, y))
"""
TAIL = """
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""


def severities(analyse: Analyse, middle: str, tensorflow: str = "2.10", tail: str = TAIL) -> list[Severity]:
    found = analyse(HEAD + middle + tail, tensorflow, ("missing-prefetch",))
    return [finding.severity for finding in found]


@pytest.mark.parametrize(("tensorflow", "severity"), [("2.10", Severity.WARNING), ("2.11", Severity.INFO)])
def test_runtime_injects_from_2_11_on(analyse: Analyse, tensorflow: str, severity: Severity) -> None:
    assert severities(analyse, "ds = ds.shuffle(64).batch(256)", tensorflow) == [severity]


def test_fused_map_and_batch_is_one_batch_ahead(analyse: Analyse) -> None:
    middle = "ds = ds.map(lambda a, b: (a + tf.random.normal([64]), b)).batch(256)"

    assert severities(analyse, middle, "2.10") == [Severity.INFO]
    assert severities(analyse, middle, "2.15") == []


def test_stateless_map_at_the_end_is_made_parallel(analyse: Analyse) -> None:
    assert severities(analyse, "ds = ds.batch(256).map(lambda a, b: (tf.sqrt(a), b))") == []


def test_random_map_at_the_end_stays_serial(analyse: Analyse) -> None:
    middle = "ds = ds.batch(256).map(lambda a, b: (a + tf.random.normal([64]), b))"

    assert severities(analyse, middle) == [Severity.WARNING]


def test_conditional_prefetch_is_unknown(analyse: Analyse) -> None:
    middle = "import sys\nds = ds.batch(256)\nif sys.argv[1:]:\n    ds = ds.prefetch(2)\n"

    assert severities(analyse, middle) == []


def test_helper_of_another_library_is_unknown(analyse: Analyse) -> None:
    assert severities(analyse, "import house\nds = house.finish(ds.batch(256))") == []


def test_tfds_prefetches_itself(analyse: Analyse) -> None:
    middle = "import tensorflow_datasets as tfds\nds = tfds.load('mnist', split='train', as_supervised=True)"

    assert severities(analyse, middle) == []


@pytest.mark.parametrize(("tensorflow", "count"), [("2.7", 1), ("2.8", 0)])
def test_directory_loaders_end_in_prefetch_from_2_8_on(analyse: Analyse, tensorflow: str, count: int) -> None:
    middle = "ds = tf.keras.utils.image_dataset_from_directory('photos')"

    assert len(severities(analyse, middle, tensorflow)) == count


def test_stages_behind_a_directory_loader_count(analyse: Analyse) -> None:
    middle = "ds = tf.keras.utils.image_dataset_from_directory('photos').cache().shuffle(8)"

    assert severities(analyse, middle) == [Severity.WARNING]


def test_strategy_prefetches_to_its_devices(analyse: Analyse) -> None:
    tail = """
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""

    assert severities(analyse, "ds = ds.shuffle(64).batch(256)", tail=tail) == []


def test_arrays_are_prefetched_by_keras(analyse: Analyse) -> None:
    assert severities(analyse, "", tail=TAIL.replace("fit(ds,", "fit(x, y,")) == []


def test_validation_is_a_hint(analyse: Analyse) -> None:
    tail = TAIL.replace("fit(ds,", "fit(ds, validation_data=held,")
    middle = "held = ds.batch(256)\nds = ds.batch(256).prefetch(2)"

    assert severities(analyse, middle, tail=tail) == [Severity.HINT]


def test_display_loop_is_no_training(analyse: Analyse) -> None:
    tail = TAIL.replace("fit(ds,", "fit(x, y,")

    assert severities(analyse, "ds = ds.batch(4)\nfor row in ds.take(1):\n    print(row)", tail=tail) == []


def test_finding_stands_at_the_last_stage_in_its_module(analyse: Analyse) -> None:
    files = {
        "data.py": "import tensorflow as tf\n\ndef load(x, y):\n"
        "    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64)\n    return ds.batch(256)\n",
        "train.py": HEAD + "from data import load\nds = load(x, y)\n" + TAIL,
    }

    (found,) = analyse(files, "2.10", ("missing-prefetch",))
    assert (found.location.path, found.location.line) == ("data.py", 5)
    assert found.fix is not None
    assert found.fix.safety == "safe"


def chain(*ops: str) -> tuple[PipelineStage, ...]:
    """Return the stages of one pipeline from the step inwards, the last with its place in the source."""
    names = ["::".join(("Iterator", "Root", *ops[: i + 1])) for i in range(len(ops))]
    spot = Spot("train.py", 7)
    return tuple(
        PipelineStage(name, op, 1.0, 20, spot if op == "BatchV2" else None)
        for name, op in zip(names, ops, strict=True)
    )


@pytest.mark.parametrize(
    ("ops", "waiting", "verdict"),
    [
        (("Prefetch", "BatchV2", "Shuffle"), 4.0, Verdict.MASKED),
        (("FiniteRepeat", "Prefetch", "BatchV2"), 4.0, Verdict.MASKED),
        (("MapAndBatch", "BatchV2"), 4.0, Verdict.MASKED),
        (("BatchV2", "Shuffle"), 4.0, Verdict.CONFIRMED),
        (("BatchV2", "Shuffle"), 0.1, Verdict.MINOR),
    ],
)
def test_rewritten_chain_and_wait_judge(
    rule: Callable[[str], Check], ops: tuple[str, ...], waiting: float, verdict: Verdict
) -> None:
    check = rule("missing-prefetch")
    evidence = evidence_of(
        gpu=True, buckets={"input_wait": waiting, "device_compute": 10.0 - waiting}, pipelines=chain(*ops)
    )

    judged = check.judge(finding_at(check, 7), evidence)

    assert judged is not None
    assert judged.verdict is verdict


def test_a_prefetch_that_only_the_traced_version_adds_says_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("missing-prefetch")
    evidence = evidence_of(buckets={"input_wait": 4.0}, pipelines=chain("Prefetch", "BatchV2", "Shuffle"))
    assert check.judge(finding_at(check, 7, injected=False), evidence) is None
    fused = evidence_of(buckets={"input_wait": 4.0}, pipelines=chain("Prefetch", "MapAndBatch", "BatchV2"))
    judged = check.judge(finding_at(check, 7, injected=False), fused)
    assert judged is not None
    assert judged.verdict is Verdict.MASKED


def test_overlap_saves_no_more_than_the_shorter_of_wait_and_step(rule: Callable[[str], Check]) -> None:
    check = rule("missing-prefetch")
    evidence = evidence_of(
        gpu=True, buckets={"input_wait": 9.0, "device_compute": 1.0}, pipelines=chain("BatchV2", "Range")
    )

    judged = check.judge(finding_at(check, 7), evidence)

    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.1)


def test_no_pipeline_in_the_trace_says_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("missing-prefetch")

    assert check.judge(finding_at(check, 7), evidence_of(buckets={"input_wait": 9.0})) is None
