from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence

RULE = "xla-shape-churn"
PADDED = SETUP.replace(".batch(256)", ".padded_batch(256)")
FIT_DATASET = 'model.compile("adam", "mse"{})\nmodel.fit(ds, epochs=9)\n'
JIT = COMPILED_STEP.replace("@tf.function", "@tf.function(jit_compile=True, reduce_retracing=True)")
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def test_compiled_function_stands_at_its_making(analyse: Analyse) -> None:
    text = PADDED + JIT + LOOP
    (finding,) = named(analyse(text), RULE)

    assert finding.location.line == line_of(text, "jit_compile")
    assert finding.related[0].location.line == line_of(text, "padded_batch")


@pytest.mark.parametrize(
    ("option", "severity"),
    [(", jit_compile=True", Severity.WARNING), ("", Severity.INFO), (", jit_compile=False", None)],
)
def test_models_under_fit(analyse: Analyse, option: str, severity: Severity | None) -> None:
    found = [finding.severity for finding in named(analyse(PADDED + FIT_DATASET.format(option)), RULE)]
    assert found == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    "ds",
    [
        "ds = ds.unbatch().batch(256)",
        "ds = ds.unbatch().padded_batch(256, padded_shapes=([8], [1]))",
        "ds = ds.map(lambda x, y: (tf.ensure_shape(x, [None, 8]), y), num_parallel_calls=4)",
        "ds = ds.unbatch().bucket_by_sequence_length(len, [8, 16], [64] * 3, pad_to_bucket_boundary=True)",
        "ds = unheard_of(ds)",
    ],
    ids=["last batch only", "whole shapes", "shape settled", "few buckets", "unknown"],
)
def test_silent_where_shapes_do_not_churn(analyse: Analyse, ds: str) -> None:
    assert named(analyse(PADDED + ds + "\n" + FIT_DATASET.format(", jit_compile=True")), RULE) == []


def test_silent_where_a_layer_keeps_xla_off(analyse: Analyse) -> None:
    text = PADDED.replace("Dense(64)", "LSTM(64)") + FIT_DATASET.format("")
    assert named(analyse(text), RULE) == []


def test_keras_2_leaves_xla_off(analyse: Analyse) -> None:
    assert named(analyse(PADDED + FIT_DATASET.format(""), tensorflow="2.12"), RULE) == []


def test_lengths_that_a_map_makes(analyse: Analyse) -> None:
    text = SETUP + "ds = ds.map(lambda x, y: (x.to_tensor(), y), num_parallel_calls=4).prefetch(2)\n"
    (finding,) = named(analyse(text + FIT_DATASET.format(", jit_compile=True")), RULE)
    assert finding.location.line == line_of(text, "to_tensor")


def test_arrays_have_one_shape(analyse: Analyse) -> None:
    assert named(analyse(PADDED + FIT.replace('"mse")', '"mse", jit_compile=True)')), RULE) == []


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (evidence_of(buckets={"compile": 4.0, "host": 6.0}), Verdict.CONFIRMED),
        (evidence_of(buckets={"compile": 0.0, "host": 9.9}), Verdict.MINOR),
        (evidence_of(facts={"jit": False}), Verdict.REFUTED),
        (evidence_of(steps=0), None),
    ],
    ids=["compiles", "does not", "no XLA", "no steps"],
)
def test_judged(rule: Callable[[str], Check], evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence)
    assert (judged.verdict if judged else None) is verdict


def test_a_prolonged_loop_meets_compiled_shapes_again(rule: Callable[[str], Check]) -> None:
    evidence = evidence_of(step_ms=20.0, buckets={"compile": 0.0, "host": 20.0}, facts={"own_step_ms": 400.0})
    judged = rule(RULE).judge(finding_at(rule(RULE), 4), evidence)
    assert judged is not None and judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.95)
