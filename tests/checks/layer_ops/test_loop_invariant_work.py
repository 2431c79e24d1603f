"""What the page of loop-invariant-work does not show."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tests.checks.snippets import SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Placement, Spot

NAME = "loop-invariant-work"
STEP = """\
fixed = tf.random.normal((8, 8))
accuracy = tf.keras.metrics.MeanSquaredError()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y)) + {inside}
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    {after}
    return loss


for x, y in ds:
    {before}
    train_step(x, y)
"""


def found(analyse: Analyse, inside: str = "0.0", after: str = "pass", before: str = "pass") -> int:
    text = SETUP + STEP.format(inside=inside, after=after, before=before)
    return len(named(analyse(text), NAME))


def test_products_of_tensors_made_before_the_loop(analyse: Analyse) -> None:
    assert found(analyse, "tf.reduce_sum(tf.linalg.expm(fixed))") == 1
    assert found(analyse, "tf.reduce_sum(tf.matmul(x, fixed))") == 0


def test_second_pass_only_for_a_metric(analyse: Analyse) -> None:
    assert found(analyse, after="accuracy.update_state(y, model(x, training=False))") == 1
    assert found(analyse, after="tf.reduce_sum(model(x, training=False))") == 0


def test_second_pass_of_another_batch_is_fine(analyse: Analyse) -> None:
    assert found(analyse, after="accuracy.update_state(y, model(x + 1, training=False))") == 0


def test_variable_made_in_every_step(analyse: Analyse) -> None:
    eager = SETUP + STEP.replace("@tf.function\n", "").format(
        inside="0.0", after="pass", before="v = tf.Variable(0.0)"
    )
    assert len(named(analyse(eager), NAME)) == 1


def test_variable_that_starts_from_the_batch_is_fine(analyse: Analyse) -> None:
    assert found(analyse, before="v = tf.Variable(x)") == 0


def test_once_in_a_hundred_steps_is_fine(analyse: Analyse) -> None:
    assert found(analyse, before="v = tf.Variable(0.0) if tf.random.uniform(()) > 0.5 else None") == 0


def test_trained_network_is_not_fixed(analyse: Analyse) -> None:
    assert found(analyse, "tf.reduce_sum(model(fixed))") == 0


def test_judge_by_the_time_of_the_line(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    here = (Placement("MatMul", 1, "gpu", predicted=True, spot=Spot("train.py", 7), ms=2.0),)
    judged = check.judge(finding_at(check, 7), evidence_of(10.0, placements=here))
    assert judged is not None and judged.verdict is Verdict.CONFIRMED
    assert check.judge(finding_at(check, 9), evidence_of(10.0, placements=here)) is None
