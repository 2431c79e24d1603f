"""TFG203: sizes that nothing reads, and sizes that count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, line_of
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.findings import Finding, Impact, Severity, Verdict
from tflint_gpu.trace.evidence import Spot, WhatIf, Window

PROGRAM = """
import sys
import numpy as np
import tensorflow as tf

x, y = np.zeros((4096, 20), "float32"), np.zeros(4096, "float32")
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")


def batches():
    while True:
        yield x[:64], y[:64]


class Rows(tf.keras.utils.Sequence):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return x[index * 64 : (index + 1) * 64], y[index * 64 : (index + 1) * 64]


"""


def found(analyse: Analyse, rest: str) -> list[Finding]:
    return analyse(PROGRAM + rest, None, ("batch-size-ignored",))


@pytest.mark.parametrize(
    "rest",
    [
        "model.fit(ds, batch_size=256)",
        "model.fit(batches(), batch_size=256, steps_per_epoch=8)",
        "model.fit(Rows(), batch_size=256)",
        "model.evaluate(ds, batch_size=256)",
        "model.predict(ds, batch_size=256)",
        "model.fit(x, y, validation_data=ds, validation_batch_size=256)",
    ],
)
def test_nothing_reads_the_size(analyse: Analyse, rest: str) -> None:
    assert [finding.severity for finding in found(analyse, rest)] == [Severity.ERROR]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("model.fit(x, y, batch_size=256)", id="arrays"),
        pytest.param("model.fit(ds, batch_size=None)", id="None"),
        pytest.param("def train(size=None):\n    model.fit(ds, batch_size=size)\n", id="may be None"),
        pytest.param("data = ds if sys.argv[1:] else x\nmodel.fit(data, batch_size=256)", id="may be an array"),
        pytest.param("import house\nmodel.fit(house.data(), batch_size=256)", id="unknown data"),
        pytest.param("model.fit(x, y, validation_data=(x, y), validation_batch_size=256)", id="validation arrays"),
    ],
)
def test_is_silent_on(analyse: Analyse, rest: str) -> None:
    assert found(analyse, rest) == []


def test_message_tells_the_batch_in_force_and_points_at_the_argument(analyse: Analyse) -> None:
    rest = "model.fit(\n    ds,\n    batch_size=256,\n)"

    (finding,) = found(analyse, rest)
    assert "64 in force" in finding.message
    assert finding.location.line == line_of(PROGRAM + rest, "batch_size=256")
    assert finding.related[0].location.line == line_of(PROGRAM, r"\.batch\(64\)")


def test_judged_by_the_rows_of_the_steps(analyse: Analyse, rule: Callable[[str], Check]) -> None:
    rest = "model.fit(\n    ds,\n    batch_size=256,\n)"
    (finding,) = found(analyse, rest)
    line = line_of(PROGRAM + rest, r"model\.fit\(\n")

    def judged(rows: int | None, at: int = line) -> Verdict | None:
        seen = evidence_of()
        assert seen.window is not None
        window = replace(seen.window, spot=Spot("train.py", at), batch_size=rows)
        judgement = rule("batch-size-ignored").judge(finding, replace(seen, window=window))
        return judgement.verdict if judgement else None

    assert (judged(64), judged(256)) == (Verdict.CONFIRMED, Verdict.REFUTED)
    assert (judged(None), judged(64, at=line + 40)) == (None, None)


def test_the_largest_batch_that_was_asked_for_says_what_it_gains(
    analyse: Analyse, rule: Callable[[str], Check]
) -> None:
    (finding,) = found(analyse, "model.fit(ds, batch_size=256)")
    window = Window("fit", 10, 20, 10.0, 0.05, Spot("train.py", finding.location.line), 64)

    def judged(*what_if: WhatIf) -> Judgement:
        judgement = rule("batch-size-ignored").judge(finding, evidence_of(window=window, what_if=what_if))
        assert judgement is not None
        return judgement

    runs = [WhatIf(f"batch-x{factor}", 1.0, factor, factor, 3, 0.02, factor - 0.1, factor) for factor in (2, 4, 8)]
    assert judged(*runs).impact == Impact(0.75, "what-if: batch x4")
    assert judged(runs[2]).impact is None
    assert judged(replace(runs[1], low=0.9)) == replace(judged(), impact=None)
