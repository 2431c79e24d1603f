"""What the page of python-op-in-model does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named
from tests.checks.snippets import COMPILED_STEP, SETUP

NAME = "python-op-in-model"
LOOP = "for x, y in ds:\n    train_step(x, y)\n"


def stepped(line: str) -> str:
    return COMPILED_STEP.replace("    return loss", f"    {line}\n    return loss") + LOOP


def test_numpy_on_the_loss(analyse: Analyse) -> None:
    assert len(named(analyse(SETUP + stepped("np.mean(loss)")), NAME)) == 1


def test_function_that_a_wrapper_decorates_has_arrays_already(analyse: Analyse) -> None:
    wrapped = (
        "@tf.numpy_function(Tout=tf.float32)\ndef reward(action):\n    return np.array(action, np.float32)\n\n"
    )
    assert named(analyse(SETUP + wrapped + stepped("reward(loss)")), NAME) == []


def test_branch_for_another_backend(analyse: Analyse) -> None:
    text = (
        SETUP
        + "import torchvision\nfrom keras import config\n\n"
        + stepped("if config.backend() == 'torch':\n        torchvision.ops.nms(loss, loss, 0.5)")
    )
    assert named(analyse(text), NAME) == []


def test_metric_that_reads_now_and_then(analyse: Analyse) -> None:
    text = SETUP + (
        "class Score(tf.keras.metrics.Metric):\n"
        "    def update_state(self, y, p, sample_weight=None):\n"
        "        if self.count % 100 == 0:\n"
        "            for part in (y, p):\n                np.concatenate([part, part])\n\n"
        "model.compile('adam', 'mse', metrics=[Score()])\nmodel.fit(ds)\n"
    )
    assert named(analyse(text), NAME) == []
    assert len(named(analyse(text.replace("self.count % 100 == 0", "True")), NAME)) == 1
