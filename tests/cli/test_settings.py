"""Settings as ``check`` meets them: in files and flags, shown, and unreadable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import EAGER, SERIAL, Check, places


def test_rules_may_be_chosen_by_flag_file_and_path(check: Check, tmp_path: Path) -> None:
    files = {"eager": EAGER, "serial": SERIAL}
    assert places(check, "--ignore", "TFG602", **files) == [("missing-prefetch", "serial.py", 4)]
    assert places(check, "--per-file-ignores", "ser*.py:all") == [("run-eagerly-enabled", "eager.py", 4)]
    assert places(check, "--exclude", "ser*,nothing") == [("run-eagerly-enabled", "eager.py", 4)]
    (tmp_path / "pyproject.toml").write_text('[tool.tflint-gpu]\nselect = ["TFG101"]\ntensorflow = "2.10"\n')
    status, out, _ = check()
    assert status == 1
    assert "TFG101" in out
    assert "TFG602" not in out


@pytest.mark.parametrize(
    ("here", "arguments"),
    [
        ("sub", [".."]),
        ("sub", ["../sub/../eager.py", ".", "../sub/.."]),
        (".", ["sub/.."]),
        ("sub", ["--config", "../tflint-gpu.toml", ".."]),
        (".", ["--config", "sub/../tflint-gpu.toml", "eager.py", "sub"]),
    ],
)
def test_patterns_and_the_nearest_file_hold_on_a_way_with_dots(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, arguments: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/eager.py").write_text(EAGER)
    (tmp_path / "eager.py").write_text(EAGER)
    (tmp_path / "tflint-gpu.toml").write_text(
        'exclude = ["/sub/"]\nper-file-ignores = {"/eager.py" = ["all"]}\ntensorflow = "2.10"\n'
    )
    monkeypatch.chdir(tmp_path / here)
    assert check(*arguments)[:2] == (0, "")


def test_settings_of_a_folder_that_the_way_leads_out_of_again_do_not_hold(check: Check, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/tflint-gpu.toml").write_text('fail-on = "nonsense"\n')
    assert check("sub")[0] == 2
    assert check("sub/..")[0] == 0


def test_a_setting_makes_a_rule_louder_and_leaves_its_doubts_quiet(check: Check) -> None:
    louder = ("--isolated", "--config", 'severity.tiny-batch = "error"', "--select", "tiny-batch")
    small = SERIAL.replace("batch(256)", "batch(8)")
    assert "tiny-batch error" in check(*louder, small=small)[1]
    doubtful = "import os\n" + small.replace("batch(8)", "batch(int(os.environ.get('BATCH', 8)))")
    assert "tiny-batch error" not in check(*louder, small=doubtful)[1]


def test_settings_shown_are_settings(check: Check, tmp_path: Path) -> None:
    (tmp_path / "tflint-gpu.toml").write_text(check("--show-settings")[1])
    assert check("--show-settings")[0] == 0
    assert check("--isolated", serial=SERIAL)[1:] == check(serial=SERIAL)[1:]


@pytest.mark.parametrize("name", ["pyproject.toml", "tflint-gpu.toml"])
def test_a_settings_file_that_is_no_utf8_is_one_sentence(check: Check, tmp_path: Path, name: str) -> None:
    table = b"[tool.tflint-gpu]\n" if name == "pyproject.toml" else b""
    (tmp_path / name).write_bytes(table + b"# caf\xe9\nselect = ['all']\n")
    status, out, err = check(serial=SERIAL)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and name in err and "not UTF-8" in err


@pytest.mark.parametrize("name", ["pyproject.toml", "tflint-gpu.toml"])
def test_a_settings_file_that_cannot_be_read_is_one_sentence(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("[tool.tflint-gpu]\n")
    reading = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return reading(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    status, out, err = check(serial=SERIAL)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and name in err and "--isolated" in err
