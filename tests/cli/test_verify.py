"""Which fixes ``--verify-fix`` puts on trial, and on what text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tflint_gpu.cli.run import lint
from tflint_gpu.cli.verify import with_verified_fixes
from tflint_gpu.config import Settings
from tflint_gpu.source.discovery import discover
from tflint_gpu.trace import verify as verifying
from tflint_gpu.trace.evidence import Environment, Evidence, VerifiedFix
from tflint_gpu.trace.script import Script
from tflint_gpu.trace.session import TraceJob
from tflint_gpu.trace.verify import Trial

EAGER = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse", run_eagerly=True)
model.fit(tf.zeros([1000, 2]), tf.zeros([1000, 1]))
"""


def test_a_trial_holds_the_fixes_of_one_rule_though_they_bring_others_to_light(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(EAGER, encoding="utf-8")
    tried: list[Trial] = []

    def note(_job: TraceJob, trials: Sequence[Trial], _tell: object, *, past: int) -> tuple[VerifiedFix, ...]:
        assert past == 0
        tried.extend(trials)
        return ()

    monkeypatch.setattr(verifying, "verify", note)
    settings = Settings(select=("TFG602", "TFG605"), tensorflow="2.21")
    result = lint(discover(["train.py"], settings), settings)
    evidence = Evidence(1, "0.1.0", "", (), Environment(), None, sources={"train.py": ""})
    job = TraceJob(Script("script", "train.py", tmp_path / "train.py", tmp_path, (tmp_path,)))
    with_verified_fixes(job, result, evidence, settings, ["all"], lambda _text: None)
    (trial,) = tried
    assert trial.code == "TFG602"
    assert trial.after["train.py"].decode() == EAGER.replace(", run_eagerly=True", "")
