"""The files around the package: hook manifest, action, licence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def test_the_hook_manifest_is_what_pre_commit_takes() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    hooks = {hook["id"]: hook for hook in clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")}
    assert set(hooks) == {"tflint-gpu", "tflint-gpu-fix"}
    for hook in hooks.values():
        assert hook["require_serial"]
        assert hook["types_or"] == ["python", "jupyter"]
        assert "--force-exclude" in hook["entry"]


def test_the_action_pastes_no_input_into_a_script(action: dict[str, Any]) -> None:
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
    used = {value for step in action["runs"]["steps"] for value in step["env"].values()}
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} <= used


FAKE = """\
#!/bin/bash
printf '%s\\n' "$@" > called.txt
for word in "$@"; do case $word in
  json:*) echo '{"findings": [1, 2]}' > "${word#json:}" ;;
  concise:*) echo 'train.py:1:1: TFG101' > "${word#concise:}" ;;
esac; done
exit 1
"""


def check(action: dict[str, Any], tmp_path: Path, **inputs: str) -> tuple[int, list[str], str, str]:
    """Run the action's second step with a linter that records how it was called."""
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "check")
    folder = tmp_path / "tflint-gpu/bin"
    folder.mkdir(parents=True)
    (folder / "tflint-gpu").write_text(FAKE)
    (folder / "tflint-gpu").chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    names = {variable: value[len("${{ inputs.") : -len(" }}")] for variable, value in step["env"].items()}
    given = {v: inputs.get(n.replace("-", "_"), action["inputs"][n]["default"]) for v, n in names.items()}
    output, summary = tmp_path / "output", tmp_path / "summary"
    runner = {"RUNNER_TEMP": tmp_path, "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, **given, **{name: str(path) for name, path in runner.items()}},
        timeout=60,
        check=False,
    )
    told = summary.read_text() if summary.exists() else ""
    return done.returncode, (tmp_path / "called.txt").read_text().splitlines(), output.read_text(), told


def test_the_action_annotates_counts_and_summarises(action: dict[str, Any], tmp_path: Path) -> None:
    status, called, output, told = check(action, tmp_path)
    assert status == 1
    assert called[:3] == ["check", "--output-format", "github"]
    assert called[-2:] == ["--", "."]
    assert output.splitlines() == ["exit-code=1", "findings=2"]
    assert "TFG101" in told


def test_the_action_hands_over_its_inputs_word_by_word(action: dict[str, Any], tmp_path: Path) -> None:
    _, called, _, told = check(
        action,
        tmp_path,
        paths="my models\nsrc\n",
        args="--ignore\nTFG201; echo $(id)",
        evidence="e v.json",
        fail_on="error",
        sarif_file="out.sarif",
        summary="false",
    )
    assert called[-3:] == ["--", "my models", "src"]
    assert "TFG201; echo $(id)" in called
    assert "sarif:out.sarif" in called
    assert called[called.index("--evidence") + 1] == "e v.json"
    assert told == ""


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
