"""Fixes with the real rules, through the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tflint_gpu.cli import invoke

CELLS = [
    ["%matplotlib inline\n", "import tensorflow as tf"],
    [
        "%%writefile data.py\n",
        "import tensorflow as tf\n",
        "\n",
        "def load():\n",
        "    return tf.data.Dataset.range(1000).batch(256)\n",
    ],
    ["!ls\n", "ds = (\n", "    tf.data.Dataset.range(10000)\n", "    .batch(256)  # é\n", ")"],
    [
        "%time model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n",
        "model.compile('adam', 'mse')\n",
        "model.fit(ds, epochs=3)",
    ],
    ["from data import load\n", "model.fit(load(), epochs=2)"],
]

SCRIPT = """\
import tensorflow as tf
ds = tf.data.Dataset.range(10000).batch(
    256,
)  # é
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""


def check(*flags: str) -> int:
    return invoke(["check", "--isolated", "--select", "TFG101", "--tensorflow", "2.9", *flags, "."])


def notebook(cells: list[list[str]]) -> str:
    code = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in cells
    ]
    whole = {"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_notebook_is_fixed_in_its_cells() -> None:
    path = Path("photos.ipynb")
    path.write_text(notebook(CELLS), encoding="utf-8")
    assert check("--fix") == 0
    expected = [list(cell) for cell in CELLS]
    expected[1][4] = "    return tf.data.Dataset.range(1000).batch(256).prefetch(tf.data.AUTOTUNE)\n"
    expected[2].insert(4, "    .prefetch(tf.data.AUTOTUNE)\n")
    assert path.read_text(encoding="utf-8") == notebook(expected)
    assert check("--fix") == 0
    assert path.read_text(encoding="utf-8") == notebook(expected)


def test_a_script_keeps_mark_line_ends_and_mode() -> None:
    path = Path("train.py")
    raw = b"\xef\xbb\xbf" + SCRIPT.replace("\n", "\r\n").encode()
    path.write_bytes(raw)
    path.chmod(0o750)
    assert check("--fix") == 0
    assert path.read_bytes() == raw.replace(b"\r\n)  #", b"\r\n).prefetch(tf.data.AUTOTUNE)  #")
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_diff_writes_nothing_and_tells_by_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(SCRIPT, encoding="utf-8")
    assert check("--diff") == 1
    assert "+).prefetch(tf.data.AUTOTUNE)  # é\n" in capsys.readouterr().out
    assert Path("train.py").read_text(encoding="utf-8") == SCRIPT
    status, out, err = told(capsys, "--fix")
    assert (status, out) == (0, "")
    assert "fixed 1 finding in 1 file" in err
    assert told(capsys, "--fix") == (0, "", "")
    assert told(capsys, "--diff") == (0, "", "")


def told(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str, str]:
    status = check(*flags)
    out, err = capsys.readouterr()
    return status, out, err


def test_fix_only_reports_nothing_that_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    eager = SCRIPT.replace('"mse"', "lambda y, p: print(y) or tf.abs(y - p), run_eagerly=True")
    Path("train.py").write_text(eager, encoding="utf-8")
    status, out, err = told(capsys, "--extend-select", "TFG602", "--fix-only")
    assert (status, out) == (0, "")
    refused, fixed = err.splitlines()
    assert "TFG602 not fixed: line 6 needs Python: print()" in refused
    assert fixed == "note: fixed 1 finding in 1 file"
    assert Path("train.py").read_text(encoding="utf-8") == eager.replace("\n)", "\n).prefetch(tf.data.AUTOTUNE)")


EAGER = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse", run_eagerly=True)
model.fit(tf.zeros([1000, 2]), tf.zeros([1000, 1]))
"""


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        (["--fix"], '"mse")'),
        (["--fix", "--unsafe-fixes"], '"mse", steps_per_execution=16)'),
        (["--fix", "--unsafe-fixes", "--unfixable", "TFG605"], '"mse")'),
    ],
)
def test_what_an_error_hid_keeps_no_fix_away_and_is_fixed_as_asked(
    flags: list[str], left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.py").write_text(EAGER, encoding="utf-8")
    status, out, err = told(capsys, "--select", "TFG602,TFG605", *flags)
    assert status == 0
    assert Path("train.py").read_text(encoding="utf-8") == EAGER.replace('"mse", run_eagerly=True)', left)
    assert ("TFG605" in out) is (left == '"mse")')
    assert ("TFG605 not fixed: the fix may change results" in err) is (flags == ["--fix"])
    assert told(capsys, "--select", "TFG602,TFG605", *flags[1:], "--diff")[0] == 0


@pytest.mark.parametrize("source", [SCRIPT, "print('é')\n"], ids=["fixed", "nothing to fix"])
def test_standard_input_is_fixed_to_standard_output(
    source: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source.encode())))
    assert invoke(["check", "--isolated", "--select", "TFG101", "--tensorflow", "2.9", "--fix-only", "-"]) == 0
    assert capfdbinary.readouterr().out == source.replace("\n)", "\n).prefetch(tf.data.AUTOTUNE)").encode()


def test_a_report_on_fixed_standard_input_has_no_place_to_go(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCRIPT.encode())))
    assert invoke(["check", "--isolated", "--select", "TFG101", "--tensorflow", "2.9", "--fix", "-"]) == 2
    assert "--fix-only writes it to standard output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        ([], True),
        (["--unfixable", "TFG101"], False),
        (["--fixable", "graph"], False),
        (["--fixable", "graph", "--extend-fixable", "missing-prefetch"], True),
        (["--unfixable", "input-pipeline", "--fixable", "TFG101"], True),
        (["--config", 'unfixable = ["TFG101"]'], False),
        (["--config", 'unfixable = ["TFG101"]', "--fixable", "all"], True),
    ],
)
def test_settings_say_what_may_be_fixed(
    flags: list[str], offered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.py").write_text(SCRIPT, encoding="utf-8")
    status, _, err = told(capsys, *flags)
    assert status == 1
    assert ("1 may be fixed with --fix; --diff shows how." in err) is offered
    assert told(capsys, *flags, "--diff")[0] == offered
    assert told(capsys, *flags, "--fix")[0] == (not offered)
    assert (Path("train.py").read_text(encoding="utf-8") != SCRIPT) is offered


def test_a_hint_that_is_not_shown_is_not_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    hinted = SCRIPT.replace(".fit(ds", ".fit(ds.prefetch(2), validation_data=ds")
    Path("train.py").write_text(hinted, encoding="utf-8")
    assert told(capsys, "--diff") == (0, "", "")
    assert told(capsys, "--diff", "--pedantic")[0] == 1


def test_a_diff_of_what_cannot_be_fixed_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = EAGER.replace('"mse"', "lambda y, p: print(y) or tf.abs(y - p)")
    Path("train.py").write_text(wanted, encoding="utf-8")
    status, out, err = told(capsys, "--extend-select", "TFG602", "--diff")
    assert (status, out) == (0, "")
    assert "TFG602 not fixed" in err


def test_fix_works_beside_hints_that_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    hinted = SCRIPT.replace('"mse")', '"mse", run_eagerly=True)')
    Path("train.py").write_text(hinted, encoding="utf-8")
    flags = ("--extend-select", "TFG602", "--config", 'severity.TFG602 = "hint"')
    assert told(capsys, *flags, "--fix")[:2] == (0, "")
    assert Path("train.py").read_text(encoding="utf-8") == hinted.replace(
        "\n)  #", "\n).prefetch(tf.data.AUTOTUNE)  #"
    )


READ_LATER = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD()

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss

losses = []
for _ in range(1000):
    loss = step(tf.random.normal([32, 8]), tf.random.normal([32, 1]))
    losses.append(loss.numpy())
"""


@pytest.mark.parametrize("form", ["concise", "full", "json"])
def test_a_fix_that_was_left_out_is_not_offered_again(capsys: pytest.CaptureFixture[str], form: str) -> None:
    Path("train.py").write_text(READ_LATER, encoding="utf-8")
    arguments = ["check", "--isolated", "--select", "TFG604", "--output-format", form, "train.py"]

    def offers(*flags: str) -> bool:
        invoke([*arguments, *flags])
        out, err = capsys.readouterr()
        assert "TFG604" in out
        if form == "json":
            (finding,) = json.loads(out)["findings"]
            assert (finding["fix"] is None) == (finding["unfixable"] is not None)
            return finding["fix"] is not None
        assert ("not fixed: " in err) == bool(flags)
        return "be fixed with --unsafe-fixes" in " ".join((out + err).split())

    # The full report has worked the edits out and knows; --fix does not try what is unsafe.
    assert offers() == offers("--fix") == (form != "full")
    assert not offers("--fix", "--unsafe-fixes")
    assert Path("train.py").read_text(encoding="utf-8") == READ_LATER


def test_what_is_silenced_is_not_fixed() -> None:
    silent = SCRIPT.replace("# é", "# tflint-gpu: ignore[TFG101]")
    Path("train.py").write_text(silent, encoding="utf-8")
    assert check("--fix") == 0
    assert Path("train.py").read_text(encoding="utf-8") == silent
