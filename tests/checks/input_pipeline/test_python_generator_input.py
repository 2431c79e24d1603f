"""TFG103: which generators are worth a word, and who they feed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import PythonInput, Spot, WhatIf

HEAD = """
import numpy as np
import pandas as pd
import tensorflow as tf

table = pd.read_csv("table.csv")
x, y = np.zeros((4096, 64), "float32"), np.zeros(4096, "float32")


def files(names=("a.npy", "b.npy")):
    while True:
        for name in names:
            block = np.load(name)
            yield block, block.mean(1)


def rows():
    for _, row in table.iterrows():
        yield row.values[:-1], row.values[-1]


def slices():
    while True:
        for i in range(0, len(x), 256):
            yield mixed(x[i : i + 256]), y[i : i + 256]


def walks():
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    while True:
        state, reward, *_ = env.step(0)
        yield state, reward


model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
SPEC = (tf.TensorSpec((None, 64), tf.float32), tf.TensorSpec((None,), tf.float32))
"""


def found(analyse: Analyse, rest: str, tensorflow: str | None = None) -> list[Finding]:
    return analyse(HEAD + rest, tensorflow, ("python-generator-input",))


@pytest.mark.parametrize(
    ("generator", "severity"),
    [
        ("files()", Severity.WARNING),
        ("rows()", Severity.WARNING),
        ("slices()", Severity.INFO),
        ("walks()", Severity.INFO),
    ],
)
def test_what_the_body_does_sets_the_voice(analyse: Analyse, generator: str, severity: Severity) -> None:
    (finding,) = found(analyse, f"model.fit({generator}, steps_per_epoch=16, epochs=3)")

    assert finding.severity is severity


def test_finding_stands_at_from_generator(analyse: Analyse) -> None:
    rest = "ds = tf.data.Dataset.from_generator(files, output_signature=SPEC).prefetch(2)\nmodel.fit(ds, epochs=3)"

    (finding,) = found(analyse, rest)
    assert finding.location.line == line_of(HEAD + rest, "from_generator")
    assert finding.severity is Severity.WARNING


def test_object_with_next_is_a_generator(analyse: Analyse) -> None:
    rest = """
class Stream:
    def __iter__(self):
        return self

    def __next__(self):
        block = np.load("a.npy")
        return block, block.mean(1)


model.fit(Stream(), steps_per_epoch=16)
"""

    assert [finding.severity for finding in found(analyse, rest)] == [Severity.WARNING]


def test_loop_that_draws_by_next(analyse: Analyse) -> None:
    rest = "source = files()\nfor step in range(1000):\n    model.train_on_batch(*next(source))\n"

    assert [finding.severity for finding in found(analyse, rest)] == [Severity.WARNING]


def test_pairs_of_image_flows_are_two_generators_in_one(analyse: Analyse) -> None:
    rest = """
from tensorflow.keras.preprocessing.image import ImageDataGenerator
images = ImageDataGenerator(rotation_range=10).flow_from_directory("images", class_mode=None)
masks = ImageDataGenerator(rotation_range=10).flow_from_directory("masks", class_mode=None)
model.fit(zip(images, masks), steps_per_epoch=16)
"""

    (finding,) = found(analyse, rest, "2.15")
    assert finding.location.line == line_of(HEAD + rest, '"images"')


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("model.predict(files(), steps=16)", id="only prediction"),
        pytest.param(
            "ds = tf.data.Dataset.from_generator(files, output_signature=SPEC).cache().batch(8).prefetch(2)\n"
            "model.fit(ds, epochs=3)",
            id="cached",
        ),
        pytest.param(
            "ds = tf.data.Dataset.from_generator(files, output_signature=SPEC)\n"
            "with tf.io.TFRecordWriter('out') as writer:\n"
            "    for block, mean in ds:\n"
            "        writer.write(tf.io.serialize_tensor(block).numpy())",
            id="writes records",
        ),
        pytest.param("model.fit(x, y, validation_data=slices(), validation_steps=4)", id="only validation"),
        pytest.param("import house\nmodel.fit(house.batches(), steps_per_epoch=16)", id="unknown input"),
        pytest.param("model.fit(x, y, batch_size=256)", id="arrays"),
    ],
)
def test_is_silent_on(analyse: Analyse, rest: str) -> None:
    assert found(analyse, rest) == []


def test_sequence_given_to_fit_generator_is_another_rules_matter(analyse: Analyse) -> None:
    rest = """
class Blocks(tf.keras.utils.Sequence):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        block = np.load(f"{index}.npy")
        return block, block.mean(1)


model.fit_generator(Blocks(), epochs=3)
"""

    assert found(analyse, rest, "2.10") == []


@pytest.mark.parametrize(
    ("cached", "verdict"),
    [
        (WhatIf("cached-batch", 4.0, 10.0, 2.5, 3, 0.05, 2.4, 2.6), Verdict.CONFIRMED),
        (WhatIf("cached-batch", 10.0, 10.0, 1.0, 3, 0.01, 0.99, 1.01), Verdict.REFUTED),
    ],
)
def test_free_input_judges(rule: Callable[[str], Check], cached: WhatIf, verdict: Verdict) -> None:
    check = rule("python-generator-input")
    source = PythonInput("generator", "files", 6.0, 40, Spot("train.py", 12))
    evidence = evidence_of(gpu=True, buckets={"input_wait": 6.0}, python_input=(source,), what_if=(cached,))

    judged = check.judge(finding_at(check, 40, names=("files",)), evidence)

    assert judged is not None
    assert judged.verdict is verdict
    if verdict is Verdict.CONFIRMED:
        assert judged.impact is not None
        assert judged.impact.step_share == pytest.approx(0.6)


def test_another_generator_is_not_this_one(rule: Callable[[str], Check]) -> None:
    check = rule("python-generator-input")
    source = PythonInput("generator", "other", 6.0, 40, Spot("other.py", 12))

    assert (
        check.judge(finding_at(check, 40), evidence_of(buckets={"input_wait": 6.0}, python_input=(source,)))
        is None
    )


def test_each_class_answers_for_what_its_own_part_of_a_common_base_does(analyse: Analyse) -> None:
    rest = """
class Base:
    def endless(self):
        while True:
            yield from self.epoch()


class Files(Base):
    def epoch(self):
        for name in ("a.npy", "b.npy"):
            yield np.load(name)


class Slices(Base):
    def epoch(self):
        for i in range(0, len(x), 256):
            yield mixed(x[i : i + 256]), y[i : i + 256]


model.fit(Files().endless(), steps_per_epoch=16, epochs=3)
model.fit(Slices().endless(), steps_per_epoch=16, epochs=3)
"""

    assert [finding.severity for finding in found(analyse, rest)] == [Severity.WARNING, Severity.INFO]
