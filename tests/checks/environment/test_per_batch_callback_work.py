from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import COMPILED_STEP, FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import CallbackCost, Spot

RULE = "per-batch-callback-work"


def watched(body: str, method: str = "on_train_batch_end") -> str:
    """Training with a callback whose `method` does `body`."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        SETUP
        + "import matplotlib.pyplot as plt\n"
        + "class Watch(tf.keras.callbacks.Callback):\n"
        + "    def score(self):\n        return self.model.predict(tf.zeros([512, 8]), batch_size=256)\n\n"
        + f"    def {method}(self, batch, logs=None):\n{lines}\n"
        + FIT.replace("epochs=10", "epochs=10, callbacks=[Watch()]")
    )


@pytest.mark.parametrize(
    "work",
    [
        "self.model.evaluate(tf.zeros([512, 8]), tf.zeros([512, 1]), batch_size=256)",
        "self.model.get_weights()",
        "plt.savefig('loss.png')",
        "open('log.txt', 'a').write('x')",
        "np.save('weights.npy', [1])",
    ],
)
def test_work_in_every_batch(analyse: Analyse, work: str) -> None:
    text = watched(work)
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.WARNING
    assert finding.location.line == line_of(text, "def on_train_batch_end") + 1


def test_stands_in_the_batch_method_where_a_helper_does_the_work(analyse: Analyse) -> None:
    text = watched("self.last = self.score()")
    (finding,) = named(analyse(text), RULE)

    assert finding.location.line == line_of(text, "self.last")
    assert finding.related[0].location.line == line_of(text, "self.model.predict")


@pytest.mark.parametrize(
    ("body", "method"),
    [
        ("if batch % 100 == 0:\n    self.score()", "on_train_batch_end"),
        ("if batch == self.wanted:\n    self.score()", "on_train_batch_end"),
        ("self.seen = getattr(self, 'seen', 0) + 1", "on_train_batch_end"),
        ("self.model.optimizer.learning_rate = 0.1 / (1 + batch)", "on_train_batch_begin"),
        ("self.score()", "on_epoch_end"),
    ],
    ids=["every 100 batches", "behind a branch", "counting", "setting a rate", "once an epoch"],
)
def test_silent(analyse: Analyse, body: str, method: str) -> None:
    assert named(analyse(watched(body, method)), RULE) == []


@pytest.mark.parametrize(
    ("callback", "severity"),
    [
        ("ModelCheckpoint('last.keras', save_freq=10)", Severity.WARNING),
        ("ModelCheckpoint('last.keras', save_freq=500)", Severity.INFO),
        ("ModelCheckpoint('last.keras', save_freq=5000)", None),
        ("ModelCheckpoint('last.keras', save_freq='epoch')", None),
        ("BackupAndRestore('backup', save_freq=20)", Severity.WARNING),
        ("TensorBoard('logs')", None),
        ("TensorBoard('logs', histogram_freq=1)", Severity.INFO),
        ("TensorBoard('logs', histogram_freq=1, write_images=True)", Severity.WARNING),
        ("TensorBoard('logs', histogram_freq=1, update_freq='batch')", Severity.WARNING),
        ("TensorBoard('logs', histogram_freq=1, profile_batch=(10, 500))", Severity.WARNING),
        ("TensorBoard('logs', update_freq='batch')", Severity.INFO),
        ("TensorBoard('logs', update_freq=500)", None),
        ("CSVLogger('log.csv')", None),
    ],
)
def test_keras_own_callbacks(analyse: Analyse, callback: str, severity: Severity | None) -> None:
    text = SETUP + FIT.replace("epochs=10", f"epochs=10, callbacks=[tf.keras.callbacks.{callback}]")
    assert [finding.severity for finding in named(analyse(text), RULE)] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("    model.save_weights('last.weights.h5')\n", 1),
        ("    if i % 1000 == 0:\n        model.save('last.keras')\n", 0),
    ],
    ids=["every step", "seldom"],
)
def test_saving_in_a_loop_of_ones_own(analyse: Analyse, body: str, count: int) -> None:
    text = SETUP + COMPILED_STEP + "for i, (x, y) in enumerate(ds):\n    train_step(x, y)\n" + body
    assert len(named(analyse(text), RULE)) == count


def test_saving_after_the_epoch_is_fine(analyse: Analyse) -> None:
    text = (
        SETUP
        + COMPILED_STEP
        + ("for epoch in range(9):\n    for x, y in ds:\n        train_step(x, y)\n    model.save('last.keras')\n")
    )
    assert named(analyse(text), RULE) == []


@pytest.mark.parametrize(("cost", "verdict"), [(3.0, Verdict.CONFIRMED), (0.01, Verdict.MINOR)])
def test_judged_by_the_time_of_the_callback(rule: Callable[[str], Check], cost: float, verdict: Verdict) -> None:
    check = rule(RULE)
    finding = check.at(finding_at(check, 12).location, "a suspicion", qualname="Watch.on_train_batch_end")
    judged = check.judge(finding, evidence_of(callbacks=(CallbackCost("Watch", cost, spot=Spot("train.py", 9)),)))

    assert judged is not None
    assert judged.verdict is verdict
    assert check.judge(finding, evidence_of()) is None


@pytest.mark.parametrize(
    ("body", "muted"),
    [
        ("self.model.save('last.keras')", "Model.save"),
        ("self.model.save_weights('last.weights.h5')", "Model.save_weights"),
        ("self.checkpoint.save('last')", "tf.train.Checkpoint.save"),
        ("tf.summary.histogram('loss', logs['loss'])", "tf.summary.create_file_writer"),
    ],
)
def test_what_the_trace_did_not_carry_out_stays_unmeasured(
    analyse: Analyse, rule: Callable[[str], Check], body: str, muted: str
) -> None:
    text = SETUP + (
        "class Watch(tf.keras.callbacks.Callback):\n"
        "    checkpoint = tf.train.Checkpoint()\n"
        f"    def on_train_batch_end(self, batch, logs=None):\n        {body}\n\n"
        "model.fit(ds, callbacks=[Watch()])\n"
    )
    (finding,) = named(analyse(text), RULE)
    cost = CallbackCost("Watch", 0.01, spot=Spot(finding.location.path, finding.location.line))
    judged = rule(RULE).judge(finding, evidence_of(callbacks=(cost,), muted=(muted,)))
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert muted in judged.reason
    judged = rule(RULE).judge(finding, evidence_of(callbacks=(cost,)))
    assert judged is not None
    assert judged.verdict is Verdict.MINOR


@pytest.mark.parametrize("made", ["ModelCheckpoint('m.keras', save_freq=10)", "TensorBoard(histogram_freq=1)"])
def test_a_muted_callback_of_keras_stays_unmeasured(
    analyse: Analyse, rule: Callable[[str], Check], made: str
) -> None:
    (finding,) = named(analyse(SETUP + f"model.fit(ds, callbacks=[tf.keras.callbacks.{made}])\n"), RULE)
    judged = rule(RULE).judge(finding, evidence_of(muted=(made.partition("(")[0],)))
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert "does not carry out" in judged.reason
