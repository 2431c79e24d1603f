"""What the page of dynamic-shape-sync does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tests.checks.layer_ops.test_dtype_cpu_fallback import STEP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Copies, Placement, Spot

NAME = "dynamic-shape-sync"


def test_selection_by_a_condition(analyse: Analyse) -> None:
    for expression in ("out[out > 0]", "out[(out > 0) & ~(out > 1)]", "tf.unique(tf.reshape(out, [-1]))[0]"):
        assert len(named(analyse(STEP.format("", expression)), NAME)) == 1, expression


def test_slices_and_selects_are_fine(analyse: Analyse) -> None:
    for expression in ("out[:, 0]", "out[..., tf.newaxis]", "tf.where(out > 0, out, 0.0)", "out[0]"):
        assert named(analyse(STEP.format("", expression)), NAME) == [], expression


def test_in_the_dataset_it_is_fine(analyse: Analyse) -> None:
    text = STEP.format("", "loss").replace(".batch(256)", ".map(lambda x: x[x > 0]).padded_batch(256, [64])")
    assert named(analyse(text), NAME) == []


def test_once_an_epoch_it_is_fine(analyse: Analyse) -> None:
    text = STEP.format("", "loss") + "\nprint(tf.boolean_mask(model(tf.zeros((9, 64))), tf.zeros(9) > 0))\n"
    assert named(analyse(text), NAME) == []


def test_judge_by_what_the_gpu_idles(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 15, ops=("Where",))
    here = (Placement("Where", 1, "gpu", predicted=False, spot=Spot("train.py", 15)),)

    def judged(busy: float, back: float) -> Verdict | None:
        evidence = evidence_of(
            10.0,
            gpu=True,
            buckets={"device_compute": busy},
            placements=here,
            copies=Copies(device_to_host_count=back),
        )
        judgement = check.judge(finding, evidence)
        return judgement.verdict if judgement else None

    assert judged(6.0, 2.0) is Verdict.CONFIRMED
    assert judged(9.9, 2.0) is Verdict.MINOR
    assert judged(6.0, 0.0) is Verdict.REFUTED
    assert check.judge(finding, evidence_of(10.0, placements=here)) is None
