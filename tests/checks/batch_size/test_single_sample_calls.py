"""TFG202: loops over samples, and loops that only look like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.trace.evidence import KerasCall, Spot, Window

HEAD = """
import os
import cv2
import gymnasium
import numpy as np
import tensorflow as tf
from tensorflow import keras

model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(512), keras.layers.Dense(20)])
model.compile("adam", "mse")
x, y = np.load("x.npy"), np.load("y.npy")
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)
"""


def found(analyse: Analyse, rest: str) -> list[Finding]:
    return analyse(HEAD + rest, None, ("single-sample-calls",))


def severities(analyse: Analyse, rest: str) -> list[Severity]:
    return [finding.severity for finding in found(analyse, rest)]


@pytest.mark.parametrize(
    "rest",
    [
        "for row in x:\n    model.predict(row[None])",
        "for i in range(len(x)):\n    model.predict(x[i : i + 1])",
        "for i in range(len(x)):\n    model.predict(x[i].reshape(1, 20))",
        "for i in range(len(x)):\n    model.predict(np.array([x[i]]))",
        "for i in range(len(x)):\n    model.predict(tf.expand_dims(x[i], 0))",
        "for row, target in zip(x, y):\n    model.fit(row[np.newaxis, :], target[None], epochs=1)",
        "for row in x:\n    model.train_on_batch(np.expand_dims(row, axis=0), y[:1])",
        "for name in os.listdir('d'):\n    model.predict(np.expand_dims(keras.utils.load_img(name), 0) / 255)",
        "for row in tf.data.Dataset.from_tensor_slices(x):\n    model(row[None])",
        "scores = [model.predict(row[None]) for row in x]",
        "for row in x[:2000]:\n    model.predict(row[None])",
        "import time\nfor row in x:\n    model.predict(row[None])\n    print(time.time())",
    ],
)
def test_one_sample_a_round(analyse: Analyse, rest: str) -> None:
    assert severities(analyse, rest) == [Severity.WARNING]


def test_helper_called_for_each_sample(analyse: Analyse) -> None:
    rest = "def score(row):\n    return model.predict(row[None])\n\nfor row in x:\n    score(row)\n"

    assert severities(analyse, rest) == [Severity.WARNING]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("for i in range(5):\n    model.predict(x[i : i + 1])", id="a look at five"),
        pytest.param("for row, _ in ds.take(2):\n    model.predict(row[:1])", id="a look at two batches"),
        pytest.param(
            "eye = cv2.VideoCapture(0)\nwhile True:\n    seen = eye.read()[1]\n    model.predict(seen[None])",
            id="a camera",
        ),
        pytest.param("while True:\n    model.predict(np.array([[float(input())]]))", id="a person"),
        pytest.param("for path in os.listdir('d'):\n    model.predict(np.load(path))", id="files of many rows"),
        pytest.param(
            "for path in os.listdir('m'):\n    net = keras.models.load_model(path)\n    net.predict(x[:1])",
            id="models",
        ),
        pytest.param("for row in x[:10]:\n    model.predict(row[None])", id="a slice of ten"),
        pytest.param("for row in x[-5:]:\n    model.predict(row[None])", id="the last five"),
        pytest.param(
            "import random\nfor row in random.sample(list(x), 6):\n    model.predict(row[None])",
            id="six at random",
        ),
        pytest.param(
            "for i, (row, name) in enumerate(zip(x[:12], os.listdir('d'))):\n    model.predict(row[None])",
            id="a slice beside names",
        ),
        pytest.param(
            "def show(rows):\n    for row in rows:\n        model.predict(row[None])\n\nshow(x[:4])\n",
            id="a slice given to a helper",
        ),
        pytest.param(
            "def warmup():\n    for _ in range(100):\n        model.predict(x[:1])\n\nwarmup()\n", id="a warm-up"
        ),
        pytest.param(
            "import time\nspent = []\nfor _ in range(200):\n    start = time.perf_counter()\n"
            "    model.predict(x[:1])\n    spent.append(time.perf_counter() - start)\n",
            id="a benchmark",
        ),
        pytest.param("for net in [model]:\n    net.predict(x[:1])", id="an ensemble"),
        pytest.param("for epoch in range(500):\n    model.fit(ds, epochs=5)\n    model.predict(x)", id="epochs"),
        pytest.param(
            "@tf.function\ndef run():\n    for i in tf.range(99):\n        model(x[None, i])\n", id="graph"
        ),
        pytest.param(
            "import sklearn.svm\nsvm = sklearn.svm.SVC()\nfor row in x:\n    svm.predict(row[None])", id="svm"
        ),
    ],
)
def test_is_silent_on(analyse: Analyse, rest: str) -> None:
    assert severities(analyse, rest) == []


def test_trials_train_a_model_each(analyse: Analyse) -> None:
    rest = """
for width in (8, 16, 32):
    net = keras.Sequential([keras.layers.Dense(width), keras.layers.Dense(1)])
    net.compile("adam", "mse")
    net.fit(x, y, batch_size=256)
    net.predict(x)
"""

    assert severities(analyse, rest) == []


def test_what_follows_from_the_last_prediction_is_info(analyse: Analyse) -> None:
    rest = "tokens = [1]\nwhile len(tokens) < 99:\n    tokens.append(model.predict(np.array([tokens])).argmax())"

    assert severities(analyse, rest) == [Severity.INFO]


def test_generation_of_hundreds_of_tokens(analyse: Analyse) -> None:
    rest = "tokens = [1]\nfor i in range(400):\n    tokens.append(model.predict(np.array([tokens])).argmax())"

    assert severities(analyse, rest) == [Severity.WARNING]


def test_hundreds_of_predictions_of_one_batch(analyse: Analyse) -> None:
    rest = "noise = x[:64]\nfor t in reversed(range({})):\n    noise = noise - model.predict(noise)"

    assert severities(analyse, rest.format(1000)) == [Severity.WARNING]
    assert severities(analyse, rest.format(50)) == []


def test_prediction_beside_a_step_that_is_seldom_itself(analyse: Analyse) -> None:
    rest = """
optimizer = keras.optimizers.Adam()
for frame in range(100000):
    if frame % 4 == 0:
        goal = model.predict(x[np.random.choice(len(x), 32)])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x[:32]) - goal) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    if frame % 1000 == 0:
        model.predict(x)
"""

    assert severities(analyse, rest) == [Severity.WARNING]


def test_generation_in_every_epoch(analyse: Analyse) -> None:
    rest = """
class Sample(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        for i in range(200):
            self.model.predict(np.zeros((1, 20)))


model.fit(x, y, batch_size=256, callbacks=[Sample()])
"""

    assert severities(analyse, rest) == [Severity.WARNING]


def test_prediction_once_an_epoch_is_fine(analyse: Analyse) -> None:
    rest = """
class Show(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(self.model.predict(np.zeros((1, 20))))


model.fit(x, y, batch_size=256, callbacks=[Show()])
"""

    assert severities(analyse, rest) == []


def test_environment_steps(analyse: Analyse) -> None:
    rest = """
env = gymnasium.make("CartPole-v1")
state, _ = env.reset()
for step in range(10_000):
    quality = model.predict(state[None])
    action = int(tf.argmax(model(state[None])[0]))
    state, reward, *_ = env.step(action)
"""

    found_here = {finding.location.line: finding.severity for finding in found(analyse, rest)}
    first = min(found_here)
    assert found_here == {first: Severity.WARNING, first + 1: Severity.INFO}


GAN = """
critic = keras.Sequential([keras.layers.Dense(512), keras.layers.Dense(1)])
critic.compile("adam", "mse")
for step in range(1000):
    fake = model.predict(np.random.normal(size=(256, 20)))
    critic.train_on_batch(fake, np.zeros(256))
    if step % 100 == 0:
        model.predict(np.random.normal(size=(16, 20)))
"""


def test_prediction_in_the_training_loop(analyse: Analyse) -> None:
    findings = found(analyse, GAN)

    assert [(finding.severity, finding.detail["kind"]) for finding in findings] == [
        (Severity.WARNING, "step"),
        (Severity.INFO, "feed"),
    ]


def test_prediction_per_batch_of_every_epoch(analyse: Analyse) -> None:
    rest = "for epoch in range(20):\n    model.fit(ds)\n    scores = [model.predict(a) - b for a, b in ds]"

    assert Severity.WARNING in severities(analyse, rest)


def test_prediction_inside_the_input_pipeline(analyse: Analyse) -> None:
    rest = """
def batches():
    while True:
        yield model.predict(x[:64]), y[:64]


head = keras.Sequential([keras.layers.Dense(512), keras.layers.Dense(1)])
head.compile("adam", "mse")
ds = tf.data.Dataset.from_generator(batches, output_types=(tf.float32, tf.float32)).prefetch(2)
head.fit(ds, steps_per_epoch=16)
"""

    (finding,) = found(analyse, rest)
    assert finding.detail["kind"] == "loader"


def test_an_epoch_per_call_of_fit(analyse: Analyse) -> None:
    rest = "for epoch in range({}):\n    model.fit(x, y, batch_size=256, epochs=1)"

    assert severities(analyse, rest.format(8)) == [Severity.INFO]
    assert severities(analyse, rest.format(100)) == []  # model-rebuilt-in-loop says it


def test_pieces_fitted_one_by_one(analyse: Analyse) -> None:
    rest = "for i in range(100):\n    model.fit(x[i * 64 : i * 64 + 64], y[i * 64 : i * 64 + 64], epochs=1)"

    assert severities(analyse, rest) == [Severity.INFO]


def test_a_fit_for_every_file_is_fine(analyse: Analyse) -> None:
    rest = "for name in os.listdir('d'):\n    part = np.load(name)\n    model.fit(part, part, batch_size=256)"

    assert severities(analyse, rest) == []


@pytest.mark.parametrize(
    "fit",
    [
        "model.fit(x, y, batch_size=256)",
        "model.fit(ds, epochs=1)",
        "model.fit(rows(), y, epochs=1, validation_data=(x, y))",
        "model.fit(rows(), y, epochs=1, validation_split=0.1)",
        "model.fit(rows(), epochs=1, steps_per_epoch=100)",
    ],
)
def test_predict_once_an_epoch_is_no_step(analyse: Analyse, fit: str) -> None:
    rest = f"from data import rows\nfor epoch in range(8):\n    {fit}\n    ranks = model.predict(x)"

    assert Severity.WARNING not in severities(analyse, rest)


def test_predict_beside_a_fit_of_one_batch_is_a_step(analyse: Analyse) -> None:
    rest = (
        "from memory import sample\nfor step in range(5000):\n    states, targets = sample(64)\n"
        "    future = model.predict(states)\n    model.fit(states, targets + future, epochs=1, verbose=0)"
    )

    assert Severity.WARNING in severities(analyse, rest)


@pytest.mark.parametrize(
    ("rows", "calls", "verdict"), [(1, 30, Verdict.CONFIRMED), (64, 30, Verdict.REFUTED), (1, 0, Verdict.MINOR)]
)
def test_rows_and_time_of_the_calls_judge(
    rule: Callable[[str], Check], rows: int, calls: int, verdict: Verdict
) -> None:
    check = rule("single-sample-calls")
    seen = KerasCall("predict", calls, 5.0, Spot("train.py", 9), rows)

    judged = check.judge(finding_at(check, 9, kind="single"), evidence_of(keras_calls=(seen,)))

    assert judged is not None
    assert judged.verdict is verdict


def test_calls_share_the_time_with_other_calls(rule: Callable[[str], Check]) -> None:
    check = rule("single-sample-calls")
    seen = (
        KerasCall("predict", 30, 60.0, Spot("train.py", 9), 64),
        KerasCall("fit", 30, 20.0, Spot("train.py", 10), 64),
    )

    judged = check.judge(finding_at(check, 9, kind="step"), evidence_of(step_ms=20.0, keras_calls=seen))

    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.75)


def test_time_of_the_training_itself_says_nothing(rule: Callable[[str], Check]) -> None:
    check = rule("single-sample-calls")
    seen = KerasCall("train_on_batch", 30, 10.0, Spot("train.py", 9), 64)

    assert check.judge(finding_at(check, 9, kind="feed"), evidence_of(keras_calls=(seen,))) is None


def test_the_share_of_the_steps_they_were_made_in_goes_first(rule: Callable[[str], Check]) -> None:
    check = rule("single-sample-calls")
    seen = KerasCall("predict", 30, 5.0, Spot("train.py", 9), 1, share=0.4)
    judged = check.judge(finding_at(check, 9, kind="single"), evidence_of(step_ms=20.0, keras_calls=(seen,)))
    assert judged is not None and judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("calls", "ms", "batch_size", "verdict"),
    [
        (30, 112.0, 32, Verdict.CONFIRMED),
        (30, 20.3, 32, Verdict.MINOR),
        (30, 19.0, 32, Verdict.MINOR),
        (3, 112.0, 32, None),
        (30, 112.0, None, None),
    ],
    ids=["setting up", "nearly all steps", "shorter than its steps", "few calls", "steps not known"],
)
def test_a_fit_is_judged_by_what_it_takes_beside_its_steps(
    rule: Callable[[str], Check], calls: int, ms: float, batch_size: int | None, verdict: Verdict | None
) -> None:
    check = rule("single-sample-calls")
    window = Window("fit", 10, 60, 10.0, 0.05, batch_size=batch_size, mean_ms=10.0)
    seen = KerasCall("fit", calls, ms, Spot("train.py", 9), 64)

    judged = check.judge(finding_at(check, 9, kind="fit"), evidence_of(window=window, keras_calls=(seen,)))

    assert (judged.verdict if judged else None) is verdict


def test_a_fit_that_validates_is_not_judged(rule: Callable[[str], Check]) -> None:
    check = rule("single-sample-calls")
    seen = KerasCall("fit", 30, 112.0, Spot("train.py", 9), 64)
    evidence = evidence_of(
        window=Window("fit", 10, 60, 10.0, 0.05, batch_size=32), keras_calls=(seen,), facts={"validation_ms": 80.0}
    )
    assert check.judge(finding_at(check, 9, kind="fit"), evidence) is None
