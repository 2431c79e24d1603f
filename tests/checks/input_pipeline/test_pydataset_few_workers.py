"""TFG104: where workers come from, and when one is enough."""

from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, line_of
from tflint_gpu.findings import Finding, Severity

CLASS = """
import argparse
import cv2
import numpy as np
import keras

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=1)
args = parser.parse_args()


class Photos(keras.utils.{base}):
    {init}

    def __len__(self):
        return 16

    def __getitem__(self, index):
        {body}


model = keras.Sequential([keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.{fit}
"""
PLAIN = "def __init__(self, names):\n        super().__init__()\n        self.names = names"
OPEN = "def __init__(self, names, **kwargs):\n        super().__init__(**kwargs)\n        self.names = names"
DECODE = "return np.stack([cv2.imread(name) for name in self.names]), np.zeros(64)"
SLICE = "return self.names[index : index + 64], np.zeros(64)"


def found(
    analyse: Analyse,
    init: str = PLAIN,
    body: str = DECODE,
    fit: str = "fit(Photos([]), epochs=3)",
    base: str = "PyDataset",
    tensorflow: str = "2.21",
) -> list[Finding]:
    text = CLASS.format(init=init, body=body, fit=fit, base=base)
    findings = analyse(text, tensorflow, ("pydataset-few-workers",))
    return [finding for finding in findings if finding.severity >= Severity.WARNING]


def test_finding_stands_where_keras_is_told_too_little(analyse: Analyse) -> None:
    text = CLASS.format(init=PLAIN, body=DECODE, fit="fit(Photos([]), epochs=3)", base="PyDataset")

    findings = analyse(text, "2.21", ("pydataset-few-workers",))
    lines = {finding.location.line: finding.severity for finding in findings}
    assert lines == {
        line_of(text, r"super\(\)"): Severity.WARNING,
        line_of(text, "imread"): Severity.INFO,
    }


def test_sequence_is_the_same_class(analyse: Analyse) -> None:
    assert len(found(analyse, base="Sequence")) == 1


def test_caller_passes_no_workers_on(analyse: Analyse) -> None:
    (finding,) = found(analyse, init=OPEN)

    assert finding.location.line == line_of(
        CLASS.format(init=OPEN, body=DECODE, fit="fit(Photos([]), epochs=3)", base="PyDataset"), r"model\.fit"
    )


def test_constructor_of_keras_never_called(analyse: Analyse) -> None:
    (finding,) = found(analyse, init="def __init__(self, names):\n        self.names = names")

    assert "never calls super().__init__" in finding.message


def test_default_of_the_command_line_counts_as_one(analyse: Analyse) -> None:
    assert len(found(analyse, init=OPEN, fit="fit(Photos([], workers=args.workers), epochs=3)")) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"init": OPEN, "fit": "fit(Photos([], workers=4), epochs=3)"}, id="workers from the caller"),
        pytest.param({"init": PLAIN.replace("__init__()", "__init__(workers=4)")}, id="workers in the class"),
        pytest.param({"body": SLICE}, id="only slices"),
        pytest.param({"fit": "predict(Photos([]))"}, id="only prediction"),
        pytest.param({"tensorflow": "2.10", "fit": "fit(Photos([]), workers=4, epochs=3)"}, id="Keras 2 workers"),
    ],
)
def test_is_silent_on(analyse: Analyse, arguments: dict[str, str]) -> None:
    assert found(analyse, **arguments) == []


def test_keras_2_asks_fit_for_workers(analyse: Analyse) -> None:
    assert len(found(analyse, tensorflow="2.10")) == 1


def test_fit_of_keras_3_takes_no_workers(analyse: Analyse) -> None:
    (finding,) = found(analyse, fit="fit(Photos([]), workers=4, epochs=3)")

    assert "Keras 3" in finding.message


@pytest.mark.parametrize(
    "data",
    [
        "tf.data.Dataset.range(9).batch(3)",
        "np.zeros([9, 3]), np.zeros([9, 1])",
        "tf.data.Dataset.from_generator(f, tf.int32)",
    ],
)
def test_workers_do_nothing_for_arrays_and_tf_data(analyse: Analyse, data: str) -> None:
    text = "import numpy as np\nimport tensorflow as tf\nfrom elsewhere import f\n"
    text += "model = tf.keras.Sequential([tf.keras.layers.Dense(2)])\nmodel.compile('adam', 'mse')\n"
    text += f"model.fit({data}, epochs=3, workers=4)\n"
    (finding,) = analyse(text, "2.17", ("pydataset-few-workers",))
    assert finding.severity is Severity.INFO
    assert "PyDataset" not in finding.message


def test_workers_do_nothing_for_a_generator(analyse: Analyse) -> None:
    fit = "fit((block for block in [1]), epochs=3)\n\ndef blocks():\n    yield 1\n\nmodel.fit(blocks(), workers=4)"

    (finding,) = found(analyse, body=SLICE, fit=fit, tensorflow="2.10")
    assert "generator" in finding.message


def test_a_queue_is_filled_for_a_generator_too(analyse: Analyse) -> None:
    fit = "fit([1.0], [1.0])\n\ndef blocks():\n    yield 1\n\nmodel.fit(blocks(), max_queue_size=20)"

    assert found(analyse, body=SLICE, fit=fit, tensorflow="2.10") == []
