"""What the page of model-rebuilt-in-loop does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Spot, TracedFunction

NAME = "model-rebuilt-in-loop"
HEAD = "import numpy as np\nfrom tensorflow import keras\n\nx = np.random.rand(4096, 64).astype('float32')\n"
BUILD = (
    "def build(width=2048):\n"
    "    net = keras.Sequential([keras.Input((64,)), keras.layers.Dense(width), keras.layers.Dense(1)])\n"
    "    net.compile('adam', 'mse')\n"
    "    return net\n\n"
)


def test_build_function_in_a_loop_is_found_in_the_function(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + "for trial in range(100):\n    net = build()\n    net.fit(x, x[:, :1], batch_size=512, epochs=2)\n"
    )
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (6, Severity.WARNING)
    assert found.related[0].location.line == 10


def test_few_rounds_of_long_training_are_fine(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + "for width in (64, 128, 256):\n    build(width).fit(x, x[:, :1], batch_size=512, epochs=100)\n"
    )
    assert named(analyse(text), NAME) == []


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("range(5)", [Severity.INFO]),
        ("range(50)", [Severity.WARNING]),
        ("range(len(x))", [Severity.WARNING]),
    ],
)
def test_short_trainings_weigh_by_their_number(analyse: Analyse, loop: str, expected: list[Severity]) -> None:
    text = HEAD + BUILD + f"for fold in {loop}:\n    build().fit(x, x[:, :1], batch_size=512, epochs=2)\n"
    assert [finding.severity for finding in named(analyse(text), NAME)] == expected


def test_a_loop_of_batches_in_each_of_a_few_rounds_is_long(analyse: Analyse) -> None:
    text = HEAD + BUILD
    text += "for seed in range(5):\n    net = build()\n"
    text += "    for i in range(8):\n        net.train_on_batch(x[:512], x[:512, :1])\n"
    assert named(analyse(text), NAME) == []


def test_layers_made_in_a_loop_make_one_model(analyse: Analyse) -> None:
    text = HEAD + (
        "net = keras.Sequential([keras.Input((64,))])\n"
        "for _ in range(30):\n"
        "    net.add(keras.Sequential([keras.layers.Dense(512), keras.layers.ReLU()]))\n"
        "net.compile('adam', 'mse')\nnet.fit(x, x[:, :1], batch_size=512)\n"
    )
    assert named(analyse(text), NAME) == []


def test_process_per_trial_starts_clean(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "import multiprocessing\n\n"
            "def trial(seed):\n    build().fit(x, x[:, :1], batch_size=512)\n\n"
            "for seed in range(50):\n    multiprocessing.Process(target=trial, args=(seed,)).start()\n"
        )
    )
    assert named(analyse(text), NAME) == []


def test_compile_of_a_few_stages_is_fine(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "net = build()\nfor rate in (0.1, 0.01, 0.001):\n"
            "    net.compile(keras.optimizers.SGD(rate), 'mse')\n"
            "    net.fit(x, x[:, :1], batch_size=512, epochs=9)\n"
        )
    )
    assert named(analyse(text), NAME) == []


def test_fit_for_one_epoch_over_the_same_data_is_info(analyse: Analyse) -> None:
    text = HEAD + BUILD + "net = build()\nfor epoch in range(200):\n    net.fit(x, x[:, :1], batch_size=512)\n"
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (12, Severity.INFO)


def test_fit_on_data_of_its_round_is_fine(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "net = build()\nfor part in range(200):\n    rows = np.load(f'{part}.npy')\n"
            "    net.fit(rows, rows[:, :1], batch_size=512)\n"
        )
    )
    assert named(analyse(text), NAME) == []


def test_model_in_a_callback(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "class Peek(keras.callbacks.Callback):\n"
            "    def on_epoch_end(self, epoch, logs=None):\n"
            "        inner = keras.Model(self.model.input, self.model.layers[0].output)\n"
            "        inner.predict(x, batch_size=512)\n\n"
            "build().fit(x, x[:, :1], batch_size=512, callbacks=[Peek()])\n"
        )
    )
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (12, Severity.INFO)


def test_judge_counts_traces_made_again(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    traced = TracedFunction("train_step", 4, 3, 40, caller=Spot("train.py", 7), trace_ms=400.0)
    judged = check.judge(finding_at(check, 7), evidence_of(10.0, buckets={"host": 10.0}, functions=(traced,)))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    once = TracedFunction("train_step", 1, 0, 40, caller=Spot("train.py", 7), trace_ms=400.0)
    assert check.judge(finding_at(check, 7), evidence_of(10.0, buckets={"host": 10.0}, functions=(once,))) is None


def test_model_loaded_for_every_picture(analyse: Analyse) -> None:
    text = (
        "import glob\nimport keras\nimport numpy as np\n\n"
        "for path in glob.glob('*.npy'):\n"
        "    net = keras.models.load_model('net.keras')\n"
        "    print(net.predict(np.load(path)))\n"
    )
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (6, Severity.WARNING)
    ensemble = text.replace("'net.keras'", "path").replace("np.load(path)", "np.load('x.npy')")
    assert named(analyse(ensemble), NAME) == []


def test_compile_in_a_callback(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "class Slower(keras.callbacks.Callback):\n"
            "    def on_epoch_end(self, epoch, logs=None):\n"
            "        self.model.compile(keras.optimizers.Adam(0.1 / (epoch + 1)), 'mse')\n\n"
            "build().fit(x, x[:, :1], batch_size=512, epochs=9, callbacks=[Slower()])\n"
        )
    )
    assert [(f.location.line, f.severity) for f in named(analyse(text), NAME)] == [(12, Severity.WARNING)]


def test_step_of_ones_own_on_a_new_model(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "import tensorflow as tf\n\n"
            "for trial in range(40):\n"
            "    net = build()\n"
            "    opt = keras.optimizers.Adam()\n"
            "    for batch in tf.data.Dataset.from_tensor_slices(x).batch(512):\n"
            "        with tf.GradientTape() as tape:\n"
            "            loss = tf.reduce_mean(net(batch))\n"
            "        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), "
            "net.trainable_variables))\n"
        )
    )
    (found,) = named(analyse(text), NAME)
    assert (found.location.line, found.severity) == (6, Severity.INFO)


def test_epochs_passed_on_through_keywords(analyse: Analyse) -> None:
    text = (
        HEAD
        + BUILD
        + (
            "def train(net, **options):\n"
            "    options.setdefault('epochs', 50)\n"
            "    net.fit(x, x[:, :1], batch_size=512, **options)\n\n"
            "for width in (64, 128, 256):\n    train(build(width))\n"
        )
    )
    assert named(analyse(text), NAME) == []
