"""The command line as a whole: its exit statuses, its one-sentence failures, and how fast it starts."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tflint_gpu import __version__
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.cli import COMMANDS, cli, invoke
from tflint_gpu.cli.options import FORMATS
from tflint_gpu.report import FORMATS as RENDERERS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TFLINT_GPU_DEBUG", raising=False)
    return tmp_path


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *arguments], env=clean, capture_output=True, text=True, timeout=60)


def test_help_lists_every_command_and_each_has_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    told = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in told
        assert invoke([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: tflint-gpu {name}")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out == f"tflint-gpu {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chekc"], "did you mean 'check'"),
        (["check", "--slect", "TFG101"], "--select"),
        (["check", "--output", "xml:a.xml"], "FORMAT:FILE"),
        (["check", "--output", "json"], "FORMAT:FILE"),
        (["check", "--select", "TFG999"], "unknown rule 'TFG999'"),
        (["check", "--tensorflow", "new"], "version in quotes"),
        (["check", "nowhere.py"], "nowhere.py: no such file or folder"),
        (["check", "-", "other.py"], "only file"),
        (["check", "--evidence", "gone.json"], "gone.json: cannot read"),
        (["check", ""], "an empty path"),
        (["check", "a.py", "--evidence", ""], "an empty path"),
        (["check", "--cache-dir="], "an empty path"),
        (["clean", "--cache-dir="], "an empty path"),
        (["import", ""], "an empty path"),
        (["import", "logs", "--evidence-out="], "an empty path"),
        (["attach", "a:1", "--logdir="], "an empty path"),
        (["trace", ""], "name the script"),
        (["trace", "--evidence-out=", "a.py"], "an empty path"),
        (["check", "--select="], "'' names no rule"),
        (["check", "--fixable", ", "], "', ' names no rule"),
        (["explain", "missing-prefech"], "did you mean 'missing-prefetch'"),
        (["explain", "zzzzzzz"], "tflint-gpu rules"),
    ],
)
def test_a_wrong_call_ends_with_two_and_a_remedy(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert "Traceback" not in err


def test_a_fault_of_its_own_is_one_sentence_unless_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("cause")

    monkeypatch.setattr(cli, "main", lambda *_, **__: broken())
    assert invoke(["check"]) == 2
    assert "RuntimeError: cause" in capsys.readouterr().err
    monkeypatch.setenv("TFLINT_GPU_DEBUG", "1")
    with pytest.raises(RuntimeError):
        invoke(["check"])


@pytest.mark.parametrize("name", ["x" * 300 + ".py", "me.py/x.py", "loop/x.py"])
@pytest.mark.parametrize(
    "call",
    [
        "check {}", "trace {}", "import {}", "check --evidence {} me.py", "check --config {}.toml me.py",
        "check --output json:{} me.py", "check --stdin-filename {} -", "clean --cache-dir {}",
        "trace --evidence-out {} me.py", "trace --output json:{} me.py", "attach --evidence-out {} h:1",
    ],
)  # fmt: skip
def test_a_path_that_no_system_takes_is_told_by_name(
    here: Path, call: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    (here / "me.py").write_text("")
    (here / "loop").symlink_to("loop")
    status = invoke(call.format(name).split())
    told = capsys.readouterr()
    if status:
        assert status == 2
        assert name in told.err
        assert "fault of its own" not in told.err
        assert "running" not in told.err
    else:  # what need not be there: no file by the name of what comes in, no cache to remove
        assert "--stdin-filename" in call or "clean" in call


def test_an_interrupt_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tflint_gpu.cli.check.lint", interrupted)
    assert invoke(["check"]) == 130
    assert capsys.readouterr().err.strip().splitlines()[-1] == "tflint-gpu: interrupted"


def test_a_reader_that_leaves_is_no_failure_to_tell() -> None:
    command = f"{sys.executable} -m tflint_gpu rules --output-format json | head -c 1"
    done = subprocess.run(
        command,
        shell=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours, with the redirections in it."""
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m tflint_gpu {command}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("streams", "status", "out", "err"),
    [
        (">&-", 1, False, True),
        ("2>&-", 1, True, False),
        (">&- 2>&-", 1, False, False),
        ("<&-", 1, True, True),
        ("<&- >&- 2>&-", 1, False, False),
    ],
)
def test_closed_streams_take_nothing_and_change_no_status(
    here: Path, streams: str, status: int, out: bool, err: bool
) -> None:
    text = "import tensorflow as tf\ntf.config.run_functions_eagerly(True)\n"
    (here / "a.py").write_text(
        text + "tf.keras.Sequential().fit(tf.zeros([9, 9]))  # tflint-gpu: ignore[nothing]\n"
    )
    done = in_shell(f"check a.py --output json:a.json {streams}")
    assert (done.returncode, bool(done.stdout), bool(done.stderr)) == (status, out, err)
    # No file took the number of a closed stream, and with it what was meant for that.
    assert json.loads((here / "a.json").read_text())["findings"]
    assert (here / "a.py").read_text().startswith(text)


def test_standard_input_that_is_closed_is_empty() -> None:
    done = in_shell("check - <&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("instead", ["--diff", "--fix-only", "--show-files", "--show-settings"])
@pytest.mark.parametrize("idle", ["--output json:a.json", "--statistics"])
def test_what_would_have_no_effect_is_refused(
    here: Path, instead: str, idle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.py").write_text("import tensorflow\n")
    assert invoke(["check", instead, *idle.split(), "a.py"]) == 2
    assert f"{instead} makes no report: leave {idle.split()[0]} off" in capsys.readouterr().err
    assert not (here / "a.json").exists()


def test_rules_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["rules"]) == 0
    table = capsys.readouterr().out
    assert all(f"{page.code}  {page.name}" in table for page in all_pages())
    assert invoke(["rules", "--output-format", "json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["code"], first["factor"], first["severity"]) == ("TFG101", "input-pipeline", "warning")


@pytest.mark.parametrize("rule", ["TFG101", "tfg101", "missing-prefetch"])
def test_explain_prints_the_page(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", rule]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# missing-prefetch (TFG101)")
    assert "+++" not in page


def test_every_format_offered_has_a_renderer() -> None:
    assert set(FORMATS) == set(RENDERERS)


def test_a_file_without_tensorflow_costs_no_heavy_import(here: Path) -> None:
    (here / "plain.py").write_text("import numpy as np\n\nprint(np.zeros(3))\n")
    program = (
        "import sys; from tflint_gpu.cli import invoke; status = invoke(['check', 'plain.py']); "
        "print(status, *sorted(name for name in sys.modules))"
    )
    status, *loaded = python("-c", program).stdout.split()
    assert status == "0"
    heavy = {"libcst", "tensorflow", "tabulate", "msgspec", "pathspec", "google.protobuf", "importlib.metadata"}
    assert not heavy & set(loaded)
    ours = {name for name in loaded if name.startswith("tflint_gpu.")}
    assert not {name for name in ours if name.startswith(("tflint_gpu.checks.", "tflint_gpu.trace."))}
    assert {name for name in ours if name.startswith("tflint_gpu.program.")} == {"tflint_gpu.program.target"}


@pytest.mark.parametrize(
    "call",
    [["trace", "--deadline"], ["trace", "--budget"], ["attach", "--duration"], ["attach", "--timeout"]],
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_time_is_a_number_of_seconds(call: list[str], value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*call, value, "train.py"]) == 2
    assert f"Invalid value for '{call[1]}'" in capsys.readouterr().err
