from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.usage import Memory

Rule = Callable[[str], Check]
RULE = "memory-creep"
GIB = 2**30

HEAD = """\
import tensorflow as tf

x, y = tf.zeros([4096, 8]), tf.zeros([4096, 512])
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(256).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(2048), tf.keras.layers.Dense(512)])
optimizer = tf.keras.optimizers.Adam()

@tf.function
def step(xb, yb):
    with tf.GradientTape() as tape:
        out = model(xb, training=True)
        loss = tf.reduce_mean(tf.square(out - yb))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, out, grads

"""

LOOP = """\
kept = []
for epoch in range(100):
    for index, (xb, yb) in enumerate(ds):
        loss, out, grads = step(xb, yb)
"""

LOCAL = """\
def epoch_of():
    kept = []
    for xb, yb in ds:
        kept.append(step(xb, yb)[1])
    return kept
for epoch in range(100):
    epoch_of()
"""

HANDED_OVER = """\
def collect(kept):
    for xb, yb in ds:
        kept.append(step(xb, yb)[1])
for epoch in range(100):
    collect([])
"""


def _lines(analyse: Analyse, text: str) -> list[int]:
    return [finding.location.line for finding in named(analyse(HEAD + text), RULE)]


@pytest.mark.parametrize(
    "kept",
    ["out", "grads", "tf.nn.softmax(out)", "(loss, out)"],
)
def test_large_tensors_of_every_step(analyse: Analyse, kept: str) -> None:
    text = LOOP + f"        kept.append({kept})\n"
    assert _lines(analyse, text) == [line_of(HEAD + text, r"kept\.append")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOOP + "        kept.append(loss)\n", "a number"),
        (LOOP + "        kept.append(out.numpy())\n", "host memory"),
        (LOOP + "        kept.append(tf.reduce_mean(out))\n", "reduced"),
        (LOOP + "        if index % 100 == 0:\n            kept.append(out)\n", "now and then"),
        (LOOP + "        kept.append(out)\n    kept.clear()\n", "cleared"),
        (LOOP + "        kept.append(out)\n    kept = []\n", "renewed"),
        (LOOP + "        kept.append(out)\n        del kept[:-10]\n", "cut"),
        (LOOP + "        kept.append(out)\n        kept.pop(0)\n", "a window"),
        ("kept = []\nfor xb, yb in ds:\n    kept.append(step(xb, yb)[1])\n", "one pass over the data"),
        (
            "from collections import deque\n"
            + LOOP.replace("[]", "deque(maxlen=10)")
            + "        kept.append(out)\n",
            "bounded",
        ),
        (
            LOCAL,
            "a list of the function",
        ),
        (
            HANDED_OVER,
            "a list of the caller",
        ),
    ],
)
def test_silent(analyse: Analyse, text: str, reason: str) -> None:
    assert _lines(analyse, text) == [], reason


def test_a_loop_without_end_needs_no_epochs(analyse: Analyse) -> None:
    text = "kept = []\nsource = iter(ds.repeat())\nwhile True:\n    kept.append(step(*next(source))[1])\n"
    assert _lines(analyse, text) == [line_of(HEAD + text, r"kept\.append")]


def test_an_attribute_lives_as_long_as_its_object(analyse: Analyse) -> None:
    trainer = (
        "class Trainer:\n"
        "    def __init__(self):\n        self.kept = []\n"
        "    def run(self):\n"
        "        for epoch in range(100):\n            for xb, yb in ds:\n"
        "                self.kept.append(step(xb, yb)[1])\n"
        "{reset}"
        "Trainer().run()\n"
    )
    reset = "    def on_epoch(self):\n        self.kept = []\n"
    text = trainer.format(reset="")
    assert _lines(analyse, text) == [line_of(HEAD + text, r"kept\.append")]
    assert _lines(analyse, trainer.format(reset=reset)) == []


def _evidence(growth: float | None, rising: float | None, peak: int = 8) -> Evidence:
    return evidence_of(gpu=True, memory=Memory("GPU_0_bfc", 16 * GIB, peak * GIB, growth, rising))


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (_evidence(2**20, 1.0), Verdict.CONFIRMED),
        (_evidence(256.0, 1.0), Verdict.MINOR),
        (_evidence(0.0, 0.0), Verdict.REFUTED),
        (_evidence(2**20, 0.1), Verdict.REFUTED),
        (_evidence(2**20, 0.5), None),
        (_evidence(None, None), None),
        (evidence_of(), None),
    ],
)
def test_the_level_of_memory_decides(rule: Rule, evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judgement = check.judge(finding_at(check, 3), evidence)
    assert (judgement.verdict if judgement else None) is verdict


def test_a_rise_is_observed_without_a_suspect(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(_evidence(2**20, 0.95))

    assert "rises by 1 MiB a step and is full after 8192 more" in finding.message
    assert len(finding.message) < 200
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    "evidence", [_evidence(2**20, 0.5), _evidence(256.0, 1.0), _evidence(0, 0), evidence_of()]
)
def test_nothing_is_observed_where_memory_stays(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []
