from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

RULE = "map-not-vectorized"


def script(
    body: str, before: str = "", after: str = "batch(512)", source: str = "TextLineDataset('a.csv')"
) -> str:
    return (
        "import tensorflow as tf\n"
        f"def parse(line):\n    {body}\n    return row, 1.0\n"
        f"ds = tf.data.{source}{before}\n"
        "ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)\n"
        f"ds = ds.{after}.prefetch(2)\n"
        "model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(2048)])\n"
        'model.compile("adam", "mse")\nmodel.fit(ds)\n'
    )


CSV = "row = tf.stack(tf.io.decode_csv(line, [[0.0]] * 8))"


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        (CSV, Severity.INFO),
        ("row = tf.io.parse_single_example(line, {})", Severity.INFO),
        ("row = tf.cast(line, tf.float32) / 255.0", Severity.HINT),
    ],
)
def test_loud_for_parsers_only(analyse: Analyse, body: str, severity: Severity) -> None:
    assert [finding.severity for finding in named(analyse(script(body)), RULE)] == [severity]


@pytest.mark.parametrize(
    "text",
    [
        script(CSV, before=".batch(512)", after="take(9)"),
        script(CSV, after="padded_batch(512)"),
        script(CSV, after="unbatch()"),
        script(CSV + "\n    row = tf.image.random_crop(row, [4])"),
        script(CSV + "\n    row = tf.reshape(row, [2, 4])"),
        script(CSV + "\n    if unheard_of(row):\n        row = tf.cast(row, tf.float16)"),
        script("row = unheard_of(line)"),
        script("row = line"),
    ],
    ids=[
        "batched before",
        "rows of many sizes",
        "no batch",
        "random",
        "rank",
        "branch",
        "unknown",
        "nothing to do",
    ],
)
def test_silent(analyse: Analyse, text: str) -> None:
    assert named(analyse(text), RULE) == []
