from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels, Placement

RULE = "float64-compute"
WIDE = SETUP.replace("\nds =", "\ntf.keras.backend.set_floatx('float64')\nds =", 1)
LOOP = "for x, y in ds:\n    train_step(x, y)\n"

TWICE = """
with tf.GradientTape() as second:
    with tf.GradientTape() as first:
        u = model(x)
    slope = first.gradient(u, x)
curve = second.gradient(slope, x)
"""


def test_layer_types(analyse: Analyse) -> None:
    text = SETUP.replace("Dense(64)", "Dense(64, dtype='float64')") + FIT
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "float64")


@pytest.mark.parametrize("dtype", ["tf.float64", "'float64'", "tf.double", "np.float64"])
def test_casts_in_the_step(analyse: Analyse, dtype: str) -> None:
    text = SETUP + COMPILED_STEP.replace("    loss", f"    y = tf.cast(y, {dtype})\n        loss") + LOOP
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "text",
    [
        SETUP + "ds = ds.map(lambda x, y: (tf.cast(x, tf.float64), y))\n" + FIT,
        SETUP + "x = tf.cast(tf.zeros([3]), tf.float64)\n" + FIT,
        SETUP + "tf.keras.backend.set_floatx('float32')\n" + FIT,
        SETUP
        + COMPILED_STEP.replace("    loss", "    n = tf.cast(tf.shape(y)[0], tf.float64)\n        loss")
        + LOOP,
        SETUP
        + "@tf.function\ndef average_precision(y, p):\n    return tf.reduce_mean(tf.cast(p, tf.float64))\n\n"
        + FIT
        + "average_precision(1.0, model(x))\n",
    ],
    ids=["in the dataset", "outside training", "32 bits", "a count", "a graph function that only evaluates"],
)
def test_silent(analyse: Analyse, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_variables_of_a_hand_made_model(analyse: Analyse) -> None:
    made = "w = tf.Variable(tf.zeros([8, 1], tf.float64), dtype=tf.float64)\n"
    text = SETUP + made + COMPILED_STEP + LOOP
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "tf.Variable")


def test_quiet_where_solvers_need_the_digits(analyse: Analyse) -> None:
    text = WIDE + "tf.linalg.cholesky(tf.eye(3))\n" + FIT
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


@pytest.mark.parametrize(
    ("work", "severity"),
    [
        ("tfp.optimizer.lbfgs_minimize(f, tf.zeros([3]))", Severity.INFO),
        ("tfp.distributions.GaussianProcess(k, x)", Severity.INFO),
        (TWICE, Severity.INFO),
        (
            "with tf.GradientTape() as tape:\n    tape.watch(x)\n    u = model(x)\ntape.gradient(u, x)",
            Severity.WARNING,
        ),
        ("tfp.distributions.Normal(0.0, 1.0).sample(3)", Severity.WARNING),
        ("tfp.distributions.Categorical(logits=x).sample()", Severity.WARNING),
    ],
)
def test_sampling_needs_no_digits_but_inference_and_physics_may(
    analyse: Analyse, work: str, severity: Severity
) -> None:
    text = "import tensorflow_probability as tfp\nfrom elsewhere import f, k\n" + WIDE + work + "\n" + FIT
    assert [finding.severity for finding in named(analyse(text), RULE)] == [severity]


def _placed(dtype: str) -> tuple[Placement, ...]:
    return (Placement("MatMul", 3, "cpu", predicted=False, spot=None, dtypes=(dtype,)),)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (
            evidence_of(gpu=True, buckets={"device_compute": 8.0}, kernels=Kernels(9, 9.0, float64_share=0.5)),
            Verdict.CONFIRMED,
        ),
        (
            evidence_of(gpu=True, buckets={"device_compute": 8.0}, kernels=Kernels(9, 9.0, float64_share=0.01)),
            Verdict.MINOR,
        ),
        (evidence_of(placements=_placed("float32")), Verdict.REFUTED),
        (evidence_of(placements=_placed("float64")), Verdict.UNMEASURED),
        (evidence_of(), None),
    ],
    ids=["64-bit kernels", "hardly any", "no 64-bit op", "on a CPU", "nothing known"],
)
def test_judged(rule: Callable[[str], Check], evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence)
    assert (judged.verdict if judged else None) is verdict
