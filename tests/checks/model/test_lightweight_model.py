"""What the page of lightweight-model does not show: other model styles, and the trace."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Spot, WhatIf, Window

NAME = "lightweight-model"


def free_input(speedup: float) -> WhatIf:
    return WhatIf("cached-batch", 2.0 / speedup, 2.0, speedup, 3, 0.02, speedup - 0.02, speedup + 0.02)


def idle(step_ms: float = 2.0, busy_ms: float = 0.2, speedup: float = 1.01) -> Evidence:
    window = Window("fit", 10, 20, step_ms, 0.05, spot=Spot("train.py", 12))
    buckets = {"device_compute": busy_ms, "launch": 1.0, "host": step_ms - busy_ms - 1.0}
    return evidence_of(step_ms, gpu=True, buckets=buckets, window=window, what_if=(free_input(speedup),))


def test_functional_model_counts_too(analyse: Analyse) -> None:
    text = (
        "import numpy as np\nfrom tensorflow import keras\n\n"
        "x = np.random.rand(4096, 18).astype('float32')\n"
        "inputs = keras.Input((18,))\n"
        "h = keras.layers.Dense(24, activation='relu')(inputs)\n"
        "model = keras.Model(inputs, keras.layers.Dense(1)(h))\n"
        "model.compile('adam', 'mse')\n"
        "model.fit(x, x[:, :1], batch_size=1024)\n"
    )
    (found,) = named(analyse(text), NAME)
    assert found.severity is Severity.HINT
    assert "500 weights" in found.message


def test_five_layers_are_no_hint(analyse: Analyse) -> None:
    text = (
        "import numpy as np\nfrom tensorflow import keras\n\n"
        "x = np.random.rand(4096, 18).astype('float32')\n"
        "model = keras.Sequential([keras.Input((18,)), *[keras.layers.Dense(24) for _ in range(5)]])\n"
        "model.compile('adam', 'mse')\nmodel.fit(x, x[:, :1], batch_size=1024)\n"
    )
    assert named(analyse(text), NAME) == []


def test_judge_refutes_on_a_busy_gpu(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    judged = check.judge(finding_at(check, 5), idle(step_ms=4.0, busy_ms=2.5))
    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_judge_confirms_idle_steps_with_free_input(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    judged = check.judge(finding_at(check, 5), idle())
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED


def test_slow_input_is_not_the_models_fault(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    assert check.judge(finding_at(check, 5), idle(speedup=2.0)) is None
    assert list(check.observe(idle(speedup=2.0))) == []


def test_observe_names_the_training(rule: Callable[[str], Check]) -> None:
    (found,) = rule(NAME).observe(idle())
    assert found.location.line == 12
    assert found.severity is Severity.INFO
    assert "10%" in found.message


def test_a_trace_without_gpu_observes_nothing(rule: Callable[[str], Check]) -> None:
    assert list(rule(NAME).observe(evidence_of(2.0, buckets={"host": 2.0}, what_if=(free_input(1.0),)))) == []
