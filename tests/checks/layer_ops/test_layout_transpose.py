"""What the page of layout-transpose does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Verdict
from tflint_gpu.trace.evidence import Kernels

NAME = "layout-transpose"
TEXT = """\
import numpy as np
import tensorflow as tf

{setting}
model = tf.keras.Sequential([
    tf.keras.Input((3, 64, 64, 64)),
    tf.keras.layers.{layer},
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10),
])
model.compile("adam", "mse", jit_compile=False)
model.fit(np.zeros((64, 3, 64, 64, 64)), np.zeros((64, 10)), batch_size=16)
"""
FIRST = 'data_format="channels_first"'


def found(analyse: Analyse, layer: str, setting: str = "", **target: str) -> list[int]:
    findings = analyse(TEXT.format(layer=layer, setting=setting), **target)
    return [finding.location.line for finding in named(findings, NAME)]


def test_setting_for_the_whole_program_is_reported_alone(analyse: Analyse) -> None:
    setting = "tf.keras.backend.set_image_data_format('channels_first')"
    assert found(analyse, f"Conv3D(64, 3, {FIRST})", setting) == [4]


def test_layout_chosen_at_run_time_is_fine(analyse: Analyse) -> None:
    layout = "'channels_first' if tf.config.list_physical_devices('GPU') else 'channels_last'"
    assert found(analyse, f"Conv3D(64, 3, data_format={layout})") == []


def test_three_dimensions_on_an_old_tensorflow_are_fine(analyse: Analyse) -> None:
    assert found(analyse, f"Conv3D(64, 3, {FIRST})") == [7]
    assert found(analyse, f"Conv3D(64, 3, {FIRST})", tensorflow="2.4") == []


def test_averages_of_a_series_are_no_images(analyse: Analyse) -> None:
    assert found(analyse, f"GlobalAveragePooling1D({FIRST})") == []


TURNED = """\
import tensorflow as tf

class Backbone(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.stem = tf.keras.layers.Conv2D(64, 3)

    def call(self, x):
        x = self.stem(x)
        if {test}:
            x = tf.transpose(x, perm=[0, 2, 3, 1])
        return x

net = Backbone()
net.compile("adam", "mse")
net.fit(tf.zeros([64, 64, 64, 3]), tf.zeros([64, 64, 64, 64]), batch_size=16)
"""


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ("unheard.of()", [11]),
        ("tf.keras.backend.image_data_format() != 'channels_last'", []),
        ("unheard.of() == 'NCHW'", []),
    ],
)
def test_arm_for_another_layout_is_fine(analyse: Analyse, test: str, lines: list[int]) -> None:
    findings = named(analyse("import unheard\n" * ("unheard" in test) + TURNED.format(test=test)), NAME)
    assert [finding.location.line - ("unheard" in test) for finding in findings] == lines


def test_judge_by_kernels_that_transpose(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 7, layout=True)

    def judged(share: float) -> Verdict | None:
        kernels = Kernels(100, 50.0, transpose_share=share)
        evidence = evidence_of(10.0, gpu=True, buckets={"device_compute": 9.0}, kernels=kernels)
        judgement = check.judge(finding, evidence)
        return judgement.verdict if judgement else None

    assert judged(0.2) is Verdict.CONFIRMED
    assert judged(0.01) is Verdict.MINOR
    assert check.judge(finding, evidence_of(10.0)) is None
