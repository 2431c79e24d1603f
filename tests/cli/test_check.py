"""``tflint-gpu check``, whole: what it reports, where it goes, and what its exit status says."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import EAGER, SERIAL, TWO, Check
from tflint_gpu.cli import invoke
from tflint_gpu.trace.evidence import Environment, Evidence, save


def test_findings_name_their_lines(check: Check) -> None:
    status, out, err = check(*TWO, eager=EAGER, serial=SERIAL)
    assert status == 1
    assert err == "note: 1 may be fixed with --fix; --diff shows how.\n"
    assert out.splitlines()[0].startswith("eager.py:4:")
    assert any(line.startswith("serial.py:4:") and "TFG101 missing-prefetch" in line for line in out.splitlines())


def test_nothing_to_say_is_success(check: Check) -> None:
    assert check(*TWO, plain="print(1)\n") == (0, "", "")
    assert check(*TWO, sound=EAGER.replace(", run_eagerly=True", ""))[0] == 0


def test_a_target_that_is_not_judged_is_said(check: Check) -> None:
    status, out, err = check(*TWO[:-1], "1.15", eager=EAGER)
    assert (status, out) == (0, "")
    assert err.startswith("note: programs for TensorFlow 1 are not judged: set `tensorflow` to the version")


def test_no_file_is_success_and_said(check: Check) -> None:
    status, out, err = check(*TWO)
    assert (status, out) == (0, "")
    assert "no Python file or notebook" in err


def test_what_a_file_imports_counts_only_if_it_is_read_too(check: Check) -> None:
    model, rest = EAGER.split("model.compile")
    train = f"from parts import model\nimport tensorflow as tf\nmodel.compile{rest}"
    assert check(*TWO, "train.py", parts=model, train=train) == (0, "", "")
    assert "train.py:3:" in check(*TWO, ".")[1]


@pytest.mark.parametrize(("level", "status"), [("error", 1), ("warning", 1), ("hint", 1), ("never", 0)])
def test_fail_on_decides_from_where_findings_fail(check: Check, level: str, status: int) -> None:
    assert check(*TWO, "--fail-on", level, eager=EAGER)[0] == status


def test_quieter_than_fail_on_is_reported_all_the_same(check: Check) -> None:
    status, out, _ = check(*TWO, "--config", 'severity.TFG602 = "info"', eager=EAGER)
    assert status == 0
    assert "TFG602 run-eagerly-enabled info" in out


def test_hints_are_for_the_pedantic(check: Check) -> None:
    quiet = ("--config", 'severity.TFG602 = "hint"')
    assert check(*TWO, *quiet, eager=EAGER)[:2] == (0, "")
    assert "run-eagerly-enabled hint" in check(*TWO, *quiet, "--pedantic")[1]


def test_a_comment_silences_its_statement_and_an_idle_one_is_told(check: Check) -> None:
    silent = EAGER.replace("run_eagerly=True)", "run_eagerly=True)  # tflint-gpu: ignore[TFG602, TFG101]")
    status, out, err = check(*TWO, eager=silent)
    assert (status, out) == (0, "")
    assert "eager.py:4: this suppression of TFG101 silences nothing" in err
    assert "TFG602" not in err


def test_a_rule_that_does_not_exist_in_a_comment_is_told(check: Check) -> None:
    silent = EAGER.replace("run_eagerly=True)", "run_eagerly=True)  # tflint-gpu: ignore[run-eagerly]")
    status, _, err = check(*TWO, eager=silent)
    assert status == 1
    assert "unknown rule 'run-eagerly' in a suppression; did you mean 'run-eagerly-enabled'" in err


def test_rules_that_were_not_run_leave_their_suppressions_alone(check: Check) -> None:
    silent = EAGER.replace("run_eagerly=True)", "run_eagerly=True)  # tflint-gpu: ignore[TFG602]")
    assert check("--isolated", "--select", "TFG101", eager=silent)[2] == ""


@pytest.mark.parametrize(
    ("named", "concerned"),
    [
        pytest.param(False, True, id="found"),
        pytest.param(True, True, id="named"),
        pytest.param(True, False, id="named, though no rule looks into it"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_and_the_others_go_on(
    check: Check, tmp_path: Path, named: bool, concerned: bool
) -> None:
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\0\0\0")
    work = "model.fit(ds.batch(8))" if concerned else "pass"
    files = {"old": f"import tensorflow; {work}\nprint 'x'\n", "eager": EAGER}
    paths = ("binary.py", "old.py", "eager.py") if named else ()
    status, out, err = check(*TWO, *paths, **files)
    assert status == 2
    assert "eager.py:4" in out
    told = err.splitlines()
    assert [line.split(": ")[1] for line in told] == ["binary.py:1", "old.py:2"]
    assert "binary" in told[0]
    assert "not Python 3" in told[1]


def test_a_named_file_is_answered_for_even_without_tensorflow(check: Check) -> None:
    assert check(*TWO, "broken.py", broken="def f(:\n")[0] == 2
    assert check(*TWO, ".")[0] == 0


def test_the_target_that_was_set_is_told_even_where_it_did_not_matter(check: Check) -> None:
    target = json.loads(check(*TWO, "--output-format", "json", plain="print(1)\n")[1])["target"]
    assert (target["tensorflow"], target["from"]) == ("2.10", "setting")


def test_errors_stand_in_the_json_too(check: Check) -> None:
    status, out, _ = check(*TWO, "--output-format", "json", "broken.py", broken="def f(:\n")
    assert status == 2
    (error,) = json.loads(out)["errors"]
    assert (error["path"], error["line"]) == ("broken.py", 1)


def test_standard_input_goes_by_the_name_it_is_given(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EAGER.encode())))
    status, out, _ = check(*TWO, "-", "--stdin-filename", "pkg/train.py")
    assert status == 1
    assert out.startswith("pkg/train.py:4:")


def test_one_run_feeds_several_outputs(check: Check, tmp_path: Path) -> None:
    status, out, _ = check(
        *TWO, "--output", "json:out/report.json", "--output", "full:full.txt", "--color", eager=EAGER
    )
    assert status == 1
    assert out.startswith("eager.py:4:")
    assert json.loads((tmp_path / "out/report.json").read_text())["summary"]["error"] == 1
    assert "^^^" in (tmp_path / "full.txt").read_text()
    assert "\x1b" not in (tmp_path / "full.txt").read_text()


def test_sarif_lists_the_rules_even_where_there_was_nothing_to_check(check: Check) -> None:
    _, out, _ = check(*TWO, "--output-format", "sarif", plain="print(1)\n")
    rules = json.loads(out)["runs"][0]["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == {"TFG101", "TFG602"}


def test_colour_on_demand_only(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    full = (*TWO, "--output-format", "full")
    assert "\x1b" not in check(*full, eager=EAGER)[1]
    assert "\x1b" in check(*full, "--color")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in check(*full)[1]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode here")
@pytest.mark.parametrize("form", ["full", "concise", "json", "github", "sarif"])
def test_a_name_that_is_no_utf8_is_reported_all_the_same(check: Check, tmp_path: Path, form: str) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.py")).write_text(EAGER)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/broken\xff.py")).write_text(EAGER + "x = (\n")
    status, out, err = check(*TWO, "--output-format", form, "--output", f"{form}:report")
    assert status == 2
    assert "run-eagerly-enabled" in out
    if form in ("full", "concise"):
        assert out.startswith("\\xfe.py:4:")
    assert "error: broken\\xff.py:6: not valid" in err
    assert "run-eagerly-enabled" in (tmp_path / "report").read_text("utf-8")


def test_an_output_that_cannot_be_written_is_told(check: Check, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, _, err = check(*TWO, "--output", "json:file/report.json", eager=EAGER)
    assert status == 2
    assert "file/report.json: cannot be written" in err
    status, _, err = check(*TWO, "--output", "json:-")
    assert status == 2
    assert "--output-format json" in err


def test_statistics_count_instead_of_listing(check: Check) -> None:
    _, out, _ = check(*TWO, "--statistics", eager=EAGER, again=EAGER, serial=SERIAL)
    rows = [line.split() for line in out.splitlines()]
    assert rows[1] == ["2", "TFG602", "run-eagerly-enabled", "error"]
    assert rows[2][:3] == ["1", "TFG101", "missing-prefetch"]
    status, out, err = check(*TWO, "--statistics", "--output-format", "json")
    assert (status, out) == (2, "")
    assert "--output FORMAT:FILE" in err


def broken(*_: Any) -> Any:
    raise KeyError("shape")


def test_a_rule_that_fails_costs_no_other_rule(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflint_gpu.checks.graph.run_eagerly_enabled import RunEagerlyEnabled

    monkeypatch.setattr(RunEagerlyEnabled, "find", broken)
    status, out, err = check(*TWO, both=EAGER + SERIAL)
    assert status == 2
    assert "TFG101" in out
    assert "rule TFG602 run-eagerly-enabled failed on this program (KeyError: 'shape')" in err
    assert "--ignore TFG602" in err


def evidence(path: Path, executed: tuple[int, ...]) -> None:
    digest = blake2b(EAGER.encode(), digest_size=16).hexdigest()
    made = Evidence(
        1, "0.1.0", "", (), Environment(), None, sources={"eager.py": digest}, executed={"eager.py": executed}
    )
    save(made, path)


def test_evidence_is_merged(check: Check, tmp_path: Path) -> None:
    evidence(tmp_path / "evidence.json", executed=(1,))
    _, out, _ = check(*TWO, "--evidence", "evidence.json", "eager.py", eager=EAGER)
    assert "[not-exercised]" in out
    changed = check(*TWO, "--evidence", "evidence.json", "eager.py", eager=f"{EAGER}# changed\n")
    assert "[unmeasured]" in changed[1]
    assert "eager.py has changed since the trace" in changed[2]


def test_evidence_of_several_runs_is_merged(check: Check, tmp_path: Path) -> None:
    evidence(tmp_path / "one.json", executed=(1,))
    evidence(tmp_path / "two.json", executed=tuple(range(1, 10)))
    both = ("--evidence", "one.json", "--evidence", "two.json")
    assert "[unmeasured]" in check(*TWO, *both, "eager.py", eager=EAGER)[1]
    _, told, _ = check(*TWO, *both, "--output-format", "json", "eager.py", eager=EAGER)
    assert len(json.loads(told)["other_traces"]) == 1
    status, _, err = check(*TWO, "--evidence", "one.json", "--evidence", "none.json", "eager.py", eager=EAGER)
    assert (status, "none.json: cannot read the evidence" in err) == (2, True)


def test_what_only_a_trace_shows_is_silenced_by_comments_too(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tflint_gpu.checks.graph.run_eagerly_enabled import RunEagerlyEnabled
    from tflint_gpu.findings import Location

    monkeypatch.setattr(
        RunEagerlyEnabled, "observe", lambda self, _: iter([self.at(Location("eager.py", 5), "seen in the trace")])
    )
    silent = EAGER.replace("epochs=3)", "epochs=3)  # tflint-gpu: ignore[TFG602]")
    made = Evidence(1, "0.1.0", "", (), Environment(), None)
    save(made, tmp_path / "evidence.json")
    assert "seen in the trace" in check(*TWO, "--evidence", "evidence.json", "eager.py", eager=EAGER)[1]
    assert "seen in the trace" not in check(*TWO, "--evidence", "evidence.json", "eager.py", eager=silent)[1]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(EAGER)
    for arguments in (["check", *TWO, "eager.py"], ["rules"], ["explain", "TFG101"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "tflint_gpu", *arguments],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
        assert done.returncode == 2
        assert done.stderr == "tflint-gpu: standard output cannot be written: No space left on device\n"


def test_every_project_is_told_with_its_version(check: Check, tmp_path: Path) -> None:
    for name, version in (("a", "2.9.1"), ("b", "2.15.0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "requirements.txt").write_text(f"tensorflow=={version}\n")
        (tmp_path / name / "train.py").write_text(SERIAL)
    both = ("--isolated", "--select", "missing-prefetch", "a", "b")
    report = json.loads(check(*both, "--output-format", "json")[1])
    assert [(one["tensorflow"], one["from"]) for one in report["targets"]] == [
        ("2.9", "a/requirements.txt"),
        ("2.15", "b/requirements.txt"),
    ]
    assert report["target"] == report["targets"][0]
    assert [finding["severity"] for finding in report["findings"]] == ["warning", "info"]
    told = check(*both, "--output-format", "full")[1]
    assert "for TensorFlow 2.9 (a/requirements.txt), 2.15 (b/requirements.txt)." in told


def test_another_versions_table_of_kernels_is_told(check: Check) -> None:
    note = "which ops TensorFlow 2.3 has no GPU kernel for is told by the table of 2.4.4"
    assert note in check("--isolated", "--tensorflow", "2.3", serial=SERIAL)[2]
    assert "table" not in check("--isolated", "--tensorflow", "2.4", serial=SERIAL)[2]


def test_a_cell_left_out_is_told_with_its_number(check: Check, tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in (EAGER, "x = = 1")]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    report = json.loads(check("--isolated", "--output-format", "json", "n.ipynb")[1])
    (left_out,) = report["left_out"]
    assert (left_out["path"], left_out["cell"], left_out["line"], report["errors"]) == ("n.ipynb", 2, 1, [])
    (log,) = json.loads(check("--isolated", "--output-format", "sarif", "n.ipynb")[1])["runs"]
    (told,) = log["invocations"][0]["toolExecutionNotifications"]
    assert told["level"] == "warning"
    assert told["locations"][0]["logicalLocations"] == [{"name": "cell 2, line 1", "kind": "member"}]
    assert log["invocations"][0]["executionSuccessful"]


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.parametrize("form", ["concise", "full", "github"])
def test_a_name_cannot_break_a_line_or_colour_it(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a\nb\x1b[31mc d\u3000é.py").write_text(
        "import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        'model.compile("adam", "mse", run_eagerly=True)\nmodel.fit(tf.zeros([1000, 2]), tf.zeros([1000, 1]))\n',
        encoding="utf-8",
    )
    Path("e\nf.py").write_text("import tensorflow\nx = (\n", encoding="utf-8")
    assert invoke(["check", "--isolated", "--no-cache", "--color", "--output-format", form, "."]) == 2
    out, err = capsys.readouterr()
    assert "a\\nb\\x1b[31mc d\u3000é.py:3:" in out
    # GitHub finds the file by its real name.
    assert ("b\x1b[31m" in out) is (form == "github")
    assert "e\\nf.py:2: not valid Python" in err
