from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, WhatIf

RULE = "replica-batch-starved"


def script(devices: str, batch: str, before: str = "") -> str:
    """A mirrored training on arrays."""
    return (
        "import numpy as np\nimport tensorflow as tf\n"
        f"strategy = tf.distribute.MirroredStrategy({devices})\n{before}"
        "with strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(2048)])\n"
        '    model.compile("adam", "mse")\n'
        f"model.fit(np.zeros([4096, 8]), np.zeros([4096, 1]){batch})\n"
    )


FOUR = "['/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3']"


@pytest.mark.parametrize(
    ("devices", "batch", "severity"),
    [
        (FOUR, ", batch_size=32", Severity.WARNING),
        (FOUR, "", Severity.WARNING),
        (FOUR, ", batch_size=128", Severity.INFO),
        (FOUR, ", batch_size=256", None),
        ("", ", batch_size=16", Severity.WARNING),
        ("", ", batch_size=64", None),
        ("['/gpu:0']", ", batch_size=16", None),
        (FOUR, ", batch_size=16 * strategy.num_replicas_in_sync", None),
        (FOUR, ", batch_size=unheard_of()", None),
    ],
)
def test_loudness_follows_what_is_left_for_a_replica(
    analyse: Analyse, devices: str, batch: str, severity: Severity | None
) -> None:
    found = [finding.severity for finding in named(analyse(script(devices, batch)), RULE)]
    assert found == ([] if severity is None else [severity])


def test_quiet_for_an_option_of_the_command_line(analyse: Analyse) -> None:
    option = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--batch', type=int, default=16)\nargs = parser.parse_args()\n"
    )
    found = named(analyse(script(FOUR, ", batch_size=args.batch", option)), RULE)
    assert [finding.severity for finding in found] == [Severity.INFO]


def test_silent_without_a_strategy(analyse: Analyse) -> None:
    text = (
        script("", ", batch_size=16")
        .replace("with strategy.scope():", "if True:")
        .replace("Mirrored", "OneDevice")
    )
    assert named(analyse(text), RULE) == []


def test_towers_of_the_old_kind(analyse: Analyse) -> None:
    text = (
        "import numpy as np\nimport tensorflow as tf\n"
        "from tensorflow.keras.utils import multi_gpu_model\n"
        "model = tf.keras.applications.ResNet50(weights=None)\n"
        "model = multi_gpu_model(model, gpus=4)\n"
        'model.compile("adam", "mse")\n'
        "model.fit(np.load('x.npy'), np.load('y.npy'), batch_size=32)\n"
    )
    (finding,) = named(analyse(text), RULE)
    assert finding.location.line == line_of(text, "model.fit")


DOUBLED = WhatIf("batch-x2", 6.0, 10.0, 1.6, 3, 0.1, 1.5, 1.7)


def _run(gpus: int, batch: int, collectives: float) -> Evidence:
    evidence = evidence_of(gpu=True, buckets={"device_compute": 10.0 - collectives, "collectives": collectives})
    assert evidence.window is not None
    device = replace(evidence.environment.device, count=gpus)
    return replace(
        evidence,
        environment=replace(evidence.environment, device=device),
        window=replace(evidence.window, batch_size=batch),
    )


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (_run(4, 32, 4.0), Verdict.CONFIRMED),
        (_run(4, 512, 4.0), Verdict.REFUTED),
        (_run(4, 32, 0.1), Verdict.MINOR),
        (replace(_run(4, 32, 0.1), what_if=(DOUBLED,)), Verdict.CONFIRMED),
        (replace(_run(4, 32, 4.0), what_if=(replace(DOUBLED, low=0.99, high=1.01),)), Verdict.REFUTED),
        (replace(_run(4, 32, 4.0), what_if=(replace(DOUBLED, low=0.8),)), Verdict.UNMEASURED),
        (replace(_run(1, 32, 0.0), what_if=(DOUBLED,)), None),
        (_run(1, 32, 0.0), None),
        (evidence_of(), None),
    ],
    ids=[
        "collectives",
        "fed",
        "no cost",
        "a larger batch gains",
        "it does not",
        "it is noisy",
        "it gains on one GPU",
        "one GPU",
        "no GPU",
    ],
)
def test_judged(rule: Callable[[str], Check], evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence)
    assert (judged.verdict if judged else None) is verdict
