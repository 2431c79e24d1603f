"""What the page of embedding-gradient-path does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Location, Verdict
from tflint_gpu.trace.evidence import Placement, Spot

NAME = "embedding-gradient-path"
TEXT = """\
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([
    tf.keras.Input({input}),
    {layer},
    tf.keras.layers.Dense(1),
])
model.compile("{optimizer}", "mse", jit_compile=False)
model.fit(np.zeros((4096, 64)), np.zeros(4096), batch_size=256)
"""


def found(analyse: Analyse, layer: str, optimizer: str = "adam", given: str = "(64,)", **target: str) -> int:
    text = TEXT.format(layer=f"tf.keras.layers.{layer}", optimizer=optimizer, input=given)
    return len(named(analyse(text, **target), NAME))


def test_small_vocabulary_is_fine(analyse: Analyse) -> None:
    assert found(analyse, "Embedding(99_999, 64)") == 0
    assert found(analyse, "Embedding(100_000, 64)") == 1


@pytest.mark.parametrize(("optimizer", "count"), [("adam", 1), ("rmsprop", 1), ("sgd", 0), ("adagrad", 0)])
def test_optimizers_of_keras_2(analyse: Analyse, optimizer: str, count: int) -> None:
    assert found(analyse, "Embedding(500_000, 64)", optimizer, tensorflow="2.15") == count


def test_size_that_is_not_known_is_left_alone(analyse: Analyse) -> None:
    assert found(analyse, "Embedding(int(np.load('n.npy')), 64)") == 0


def test_sparse_input_to_a_dense_layer(analyse: Analyse) -> None:
    assert found(analyse, "Dense(64)", given="(64,), sparse=True") == 1
    assert found(analyse, "Dense(64)", given="(64,)") == 0
    assert found(analyse, "Embedding(9, 64)", given="(64,), sparse=True") == 0


def test_judge_by_ops_over_the_whole_table(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 6, table_bytes=4_000_000)

    def judged(op: str, size: int, ms: float) -> Verdict | None:
        op_of_step = Placement(op, 1, "gpu", predicted=True, spot=None, ms=ms, bytes=size)
        judgement = check.judge(finding, evidence_of(10.0, placements=(op_of_step,)))
        return judgement.verdict if judgement else None

    assert judged("AddV2", 8_000_000, 3.0) is Verdict.CONFIRMED
    assert judged("AddV2", 8_000_000, 0.1) is Verdict.MINOR
    assert judged("AddV2", 4_000, 3.0) is Verdict.REFUTED
    assert judged("GatherV2", 8_000_000, 3.0) is None


def test_sparse_product_is_judged_by_the_ops_of_its_layer(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 5, product=(Location("train.py", 7, 1), Location("train.py", 9, 1)))

    def judged(line: int, ms: float, *, gpu: bool = False) -> Verdict | None:
        op = Placement("UnsortedSegmentSum", 1, "gpu", predicted=not gpu, spot=Spot("train.py", line), ms=ms)
        evidence = evidence_of(10.0, gpu=gpu, buckets={"device_compute": 5.0}, placements=(op,))
        judgement = check.judge(finding, evidence)
        return judgement.verdict if judgement else None

    assert judged(7, 3.0) is judged(9, 3.0) is Verdict.CONFIRMED
    assert judged(8, 3.0) is None
    assert judged(7, 0.1) is Verdict.UNMEASURED
    assert judged(7, 0.1, gpu=True) is Verdict.MINOR


def test_a_sparse_input_knows_the_layer_that_takes_it(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "given = tf.keras.Input((64,), sparse=True)\n"
        "dense = tf.keras.layers.Dense(64)\n"
        "hidden = dense(given)\n"
        "model = tf.keras.Model(given, hidden)\n"
        "model.compile('adam', 'mse')\nmodel.fit(tf.zeros((512, 64)), tf.zeros((512, 64)))\n"
    )
    [finding] = named(analyse(text), NAME)
    assert [place.line for place in finding.detail["product"]] == [3, 4]
