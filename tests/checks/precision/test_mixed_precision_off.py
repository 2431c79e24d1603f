from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Kernels, WhatIf

RULE = "mixed-precision-off"
LARGE = SETUP.replace("tf.keras.layers.Dense(64)", ", ".join(["tf.keras.layers.Dense(2048)"] * 3))


def test_stands_at_compile(analyse: Analyse) -> None:
    text = LARGE + FIT
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "compile")


def test_networks_of_keras_applications_are_large(analyse: Analyse) -> None:
    text = SETUP + "model = tf.keras.applications.ResNet50(weights=None)\n" + FIT
    assert len(named(analyse(text), RULE)) == 1


def test_so_are_models_built_on_them(analyse: Analyse) -> None:
    text = SETUP + "base = tf.keras.applications.ResNet50(weights=None, include_top=False)\n"
    text += "model = tf.keras.Sequential([base, tf.keras.layers.Dense(2)])\n" + FIT
    assert len(named(analyse(text), RULE)) == 1


@pytest.mark.parametrize(
    "decision",
    [
        "tf.keras.mixed_precision.set_global_policy('float32')",
        "tf.keras.config.set_dtype_policy('mixed_float16')",
        "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')",
        "tf.keras.backend.set_floatx('float64')",
        "tf.config.optimizer.set_experimental_options({'auto_mixed_precision': True})",
        "tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)",
        "import os\nos.environ['TF_ENABLE_AUTO_MIXED_PRECISION'] = '1'",
    ],
)
def test_silent_where_precision_was_thought_about(analyse: Analyse, decision: str) -> None:
    assert named(analyse(LARGE.replace("\nds =", f"\n{decision}\nds =", 1) + FIT), RULE) == []


def test_silent_with_types_of_single_layers(analyse: Analyse) -> None:
    text = LARGE.replace("Dense(2048)", "Dense(2048, dtype='mixed_bfloat16')") + FIT
    assert named(analyse(text), RULE) == []


def test_silent_for_a_model_that_is_not_trained(analyse: Analyse) -> None:
    assert named(analyse(LARGE + "model.predict(tf.zeros([4096, 8]))\n"), RULE) == []


def _run(speedup: float, low: float, high: float) -> WhatIf:
    return WhatIf("mixed-bfloat16", 10.0 / speedup, 10.0, speedup, 3, 0.1, low, high)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (evidence_of(what_if=(_run(1.6, 1.5, 1.7),)), Verdict.CONFIRMED),
        (evidence_of(what_if=(_run(0.9, 0.8, 0.99),)), Verdict.REFUTED),
        (evidence_of(facts={"mixed_precision": "mixed_bfloat16"}), Verdict.REFUTED),
        (
            evidence_of(
                gpu=True,
                buckets={"device_compute": 5.0, "input_wait": 5.0},
                kernels=Kernels(99, 50.0, gemm_share=0.6),
            ),
            Verdict.MINOR,
        ),
        (evidence_of(), None),
    ],
    ids=["gain", "loss", "already mixed", "few products", "nothing known"],
)
def test_judged(rule: Callable[[str], Check], evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence)

    assert (judged.verdict if judged else None) is verdict
    if verdict is Verdict.CONFIRMED:
        assert judged is not None
        assert judged.severity is Severity.WARNING


def test_blocks_that_a_loop_repeats(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\nfrom tensorflow.keras import layers\n"
        "def build(depth={}):\n"
        "    i = layers.Input((64, 768))\n    x = i\n"
        "    for _ in range(depth):\n"
        "        x = layers.Add()([x, layers.MultiHeadAttention(12, 64)(x, x)])\n"
        "    return tf.keras.Model(i, layers.Dense(10)(x))\n"
        "m = build()\nm.compile('adam', 'mse')\n"
        "m.fit(tf.zeros((4096, 64, 768)), tf.zeros((4096, 64, 10)))\n"
    )
    assert len(named(analyse(text.format(12)), RULE)) == 1
    assert named(analyse(text.format(1)), RULE) == []


_TWO = (
    "import tensorflow as tf\nfrom tensorflow.keras import layers\n"
    "x = i = layers.Input((2048,))\n"
    "for _ in range(4):\n    x = layers.Dense(2048)(x)\n"
    "a = layers.Dense(1)(x)\nb = layers.Dense(2)({})\n"
    "m = tf.keras.Model(i, {})\nm.compile('adam', 'mse')\nm.fit(tf.zeros((4096, 2048)), tf.zeros((4096, 1)))\n"
)


@pytest.mark.parametrize("outputs", ["[a, b]", "(a, b)", "{'a': a, 'b': b}"])
def test_every_output_stays_in_float32(analyse: Analyse, outputs: str) -> None:
    (finding,) = named(analyse(_TWO.format("x", outputs)), RULE)
    assert finding.fix is not None
    lines = [change.location.line for change in finding.fix.changes if change.kind == "add-argument"]
    assert lines == [6, 7]


@pytest.mark.parametrize("outputs", ["[a, unknown(b)]", "[a, *rest]", "{'a': a, **rest}", "[a, b + 1]"])
def test_no_fix_where_an_output_is_not_known(analyse: Analyse, outputs: str) -> None:
    findings = named(analyse(_TWO.format("x", outputs)), RULE)
    assert all(finding.fix is None for finding in findings)


def test_widths_that_a_loop_gives_count_by_the_least(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\nfrom tensorflow.keras import layers\n"
        "i = layers.Input((64, 64, 3))\nx = i\n"
        "for width in {}:\n"
        "    x = layers.Conv2D(width, 3, padding='same')(x)\n    x = layers.MaxPooling2D(2)(x)\n"
        "x = layers.GlobalAveragePooling2D()(x)\n"
        "m = tf.keras.Model(i, layers.Dense(1)(x))\nm.compile('adam', 'mse')\n"
        "m.fit(tf.zeros((4096, 64, 64, 3)), tf.zeros((4096, 1)))\n"
    )
    assert len(named(analyse(text.format("(64, 128, 256)")), RULE)) == 1
    assert named(analyse(text.format("(16, 32, 64)")), RULE) == []
    assert named(analyse(text.format("(64, 128)")), RULE) == []
