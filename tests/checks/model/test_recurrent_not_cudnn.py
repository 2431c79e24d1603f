"""What the page of recurrent-not-cudnn does not show: soft options, input, masks, and the trace."""

from __future__ import annotations

from collections.abc import Callable

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import GraphLoop, Kernels, Placement, Spot

NAME = "recurrent-not-cudnn"
HEAD = "import numpy as np\nimport tensorflow as tf\n\nx = np.random.rand(2048, 40, 8).astype('float32')\n"
FIT = "model.compile('adam', 'mse')\nmodel.fit(x, x[:, 0, :1], batch_size=256)\n"


def model_of(layer: str, before: str = "") -> str:
    return f"{HEAD}{before}model = tf.keras.Sequential([tf.keras.Input((40, 8)), {layer}])\n{FIT}"


def test_activation_given_as_function_is_the_default(analyse: Analyse) -> None:
    text = model_of(
        "tf.keras.layers.LSTM(64, activation=tf.nn.tanh, recurrent_activation=tf.keras.activations.sigmoid)"
    )
    assert named(analyse(text), NAME) == []


def test_program_that_hides_its_gpus_is_left_alone(analyse: Analyse) -> None:
    text = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n" + model_of(
        "tf.keras.layers.LSTM(64, unroll=True, use_bias=False)"
    )
    assert named(analyse(text), NAME) == []


def test_layer_in_a_cpu_block_is_left_alone(analyse: Analyse) -> None:
    text = HEAD + (
        "with tf.device('/CPU:0'):\n"
        "    model = tf.keras.Sequential([tf.keras.layers.LSTM(64, activation='relu')])\n" + FIT
    )
    assert named(analyse(text), NAME) == []


def test_unknown_option_accuses_nobody(analyse: Analyse) -> None:
    before = "import sys\nrate = float(sys.argv[1])\n"
    assert named(analyse(model_of("tf.keras.layers.LSTM(64, recurrent_dropout=rate)", before)), NAME) == []


def test_option_with_a_default_is_info(analyse: Analyse) -> None:
    before = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--rate', type=float, default=0.1)\nargs = parser.parse_args()\n"
    )
    (found,) = named(analyse(model_of("tf.keras.layers.GRU(64, recurrent_dropout=args.rate)", before)), NAME)
    assert found.severity is Severity.INFO


def test_every_option_that_cudnn_lacks_is_named(analyse: Analyse) -> None:
    for option in (
        "use_bias=False",
        "reset_after=False",
        "recurrent_activation='hard_sigmoid'",
        "use_cudnn=False",
    ):
        (found,) = named(analyse(model_of(f"tf.keras.layers.GRU(64, {option})")), NAME)
        assert option.split("=")[0] in found.message
        assert found.severity is Severity.WARNING


def test_layers_that_no_fused_kernel_exists_for_are_info(analyse: Analyse) -> None:
    (found,) = named(analyse(model_of("tf.keras.layers.SimpleRNN(64)")), NAME)
    assert found.severity is Severity.INFO


def test_cell_of_the_project_is_info(analyse: Analyse) -> None:
    before = (
        "class Leaky(tf.keras.layers.Layer):\n    state_size = 8\n    def call(self, x, states):\n"
        "        return x, states\n\n"
    )
    (found,) = named(analyse(model_of("tf.keras.layers.RNN(Leaky())", before)), NAME)
    assert found.severity is Severity.INFO


def test_cells_in_a_stack_are_found_at_the_rnn(analyse: Analyse) -> None:
    before = (
        "cells = tf.keras.layers.StackedRNNCells([tf.keras.layers.GRUCell(64), tf.keras.layers.GRUCell(64)])\n"
    )
    (found,) = named(analyse(model_of("tf.keras.layers.RNN(cells)", before)), NAME)
    assert found.severity is Severity.WARNING
    assert "stacked GRU" in found.message


RAGGED = (
    "import tensorflow as tf\n"
    "tokens = tf.keras.Input((None,), dtype='int32', ragged=True)\n"
    "h = tf.keras.layers.LSTM(64)(tf.keras.layers.Embedding(5000, 64)(tokens))\n"
    "model = tf.keras.Model(tokens, tf.keras.layers.Dense(1)(h))\n"
)


def test_ragged_input_is_found_where_it_is_declared(analyse: Analyse) -> None:
    (found,) = named(analyse(RAGGED), NAME)
    assert found.location.line == 2
    assert found.related[0].location.line == 3


def test_ragged_input_without_recurrence_is_fine(analyse: Analyse) -> None:
    text = RAGGED.replace("tf.keras.layers.LSTM(64)", "tf.keras.layers.GlobalAveragePooling1D()")
    assert named(analyse(text), NAME) == []


PADDED = (
    "import tensorflow as tf\n"
    "texts = [[1, 2, 3], [4, 5]]\n"
    "rows = tf.keras.utils.pad_sequences(texts, maxlen=100)\n"
    "model = tf.keras.Sequential([\n"
    "    tf.keras.layers.Embedding(5000, 64, mask_zero=True), tf.keras.layers.LSTM(64), "
    "tf.keras.layers.Dense(1)])\n"
    "model.compile('adam', 'mse')\n"
    "model.fit(rows, rows[:, :1], batch_size=256)\n"
)


def test_front_padding_with_a_mask_is_found_at_the_padding(analyse: Analyse) -> None:
    (found,) = named(analyse(PADDED), NAME)
    assert found.location.line == 3
    assert "error" in found.message
    (found,) = named(analyse(PADDED, tensorflow="2.12"), NAME)
    assert "falls back" in found.message


def test_padding_at_the_end_or_without_a_mask_is_fine(analyse: Analyse) -> None:
    assert named(analyse(PADDED.replace("maxlen=100", "maxlen=100, padding='post'")), NAME) == []
    assert named(analyse(PADDED.replace(", mask_zero=True", "")), NAME) == []


def test_cell_fed_slice_by_slice_is_info(analyse: Analyse) -> None:
    text = HEAD + (
        "class Net(tf.keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.cell = tf.keras.layers.LSTMCell(64)\n"
        "    def call(self, x):\n"
        "        h = [tf.zeros((256, 64)), tf.zeros((256, 64))]\n"
        "        for t in range(40):\n"
        "            y, h = self.cell(x[:, t], h)\n"
        "        return y\n"
        "model = Net()\n" + FIT
    )
    found = named(analyse(text), NAME)
    assert [(f.location.line, f.severity) for f in found] == [(12, Severity.INFO)]


def test_judge_refutes_where_cudnn_ran(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    ran = Placement("CudnnRNNV3", 2, "gpu", predicted=False, spot=Spot("train.py", 7), ms=0.4)
    judged = check.judge(finding_at(check, 7), evidence_of(gpu=True, placements=(ran,)))
    assert judged is not None
    assert judged.verdict is Verdict.REFUTED


def test_judge_confirms_by_launches(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    buckets = {"device_compute": 4.0, "launch": 5.0, "host": 1.0}
    evidence = evidence_of(gpu=True, buckets=buckets, kernels=Kernels(per_step=6000, median_us=3.0))
    judged = check.judge(finding_at(check, 7), evidence)
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == 0.5


def test_judge_knows_nothing_without_a_gpu(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    assert check.judge(finding_at(check, 7), evidence_of(buckets={"host": 10.0})) is None


def test_judge_sees_the_loop_over_time_on_a_cpu_but_not_what_cudnn_would_give_back(
    rule: Callable[[str], Check],
) -> None:
    check = rule(NAME)
    loop = GraphLoop(Spot("train.py", 7), body_ops=24, rounds=60.0, ms=6.0)
    judged = check.judge(finding_at(check, 7), evidence_of(10.0, loops=(loop,)))
    assert judged is not None
    assert (judged.verdict, judged.impact) == (Verdict.CONFIRMED, None)
    assert [(each.metric, each.value) for each in judged.measures] == [
        ("loop_share", 0.6),
        ("rounds_per_step", 60.0),
        ("ops_per_round", 24.0),
    ]
    judged = check.judge(finding_at(check, 7), evidence_of(1000.0, loops=(loop,)))
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED


def test_judge_does_not_take_another_lines_loop(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    loop = GraphLoop(Spot("train.py", 8), body_ops=24, rounds=60.0, ms=6.0)
    assert check.judge(finding_at(check, 7), evidence_of(10.0, loops=(loop,))) is None
