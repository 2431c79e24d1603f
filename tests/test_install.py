"""The package where it is used: installed without TensorFlow, and as a pre-commit hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SERIAL

pytestmark = pytest.mark.install

ROOT = Path(__file__).parents[1]

CLEAN = "import tensorflow as tf\n\nprint(tf.__version__)\n"
EAGER = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse", run_eagerly=True)
model.fit(tf.zeros([64, 8]), tf.zeros([64, 1]), batch_size=32, epochs=3)
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}
    return subprocess.run([*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, timeout=300)


def git(*arguments: str, cwd: Path) -> None:
    done = run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a fresh environment that holds the wheel and what it needs, nothing else."""
    folder = tmp_path_factory.mktemp("install")
    pip = (sys.executable, "-m", "pip")
    built = run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    assert run(sys.executable, "-m", "venv", folder / "env", cwd=folder).returncode == 0
    wheel = next(folder.glob("*.whl"))
    done = run(folder / "env/bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "env/bin"


def test_check_works_where_tensorflow_is_not_installed(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "python", "-c", "import tensorflow", cwd=tmp_path).returncode == 1
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "eager.py").write_text(EAGER)
    done = run(installed / "tflint-gpu", "check", "--output-format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["files"] == 2
    assert ("eager.py", "run-eagerly-enabled") in {(f["path"], f["name"]) for f in report["findings"]}
    assert {finding["path"] for finding in report["findings"]} == {"eager.py"}


def test_the_wheel_carries_every_page(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "tflint-gpu", "rules", "--output-format", "json", cwd=tmp_path)
    shipped = {rule["name"] for rule in json.loads(done.stdout)}
    assert shipped == {page.stem for page in ROOT.glob("rules/*/*.md")}
    assert "## Why the GPU waits" in run(installed / "tflint-gpu", "explain", "TFG101", cwd=tmp_path).stdout


CONFIG = """\
repos:
- repo: {repo}
  rev: {rev}
  hooks:
  - id: tflint-gpu
  - id: tflint-gpu-fix
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that uses the hooks of this one, as it was last committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "store"))
    git("clone", "--quiet", str(ROOT), str(tmp_path / "hooks"), cwd=tmp_path)
    rev = run("git", "rev-parse", "HEAD", cwd=tmp_path / "hooks").stdout.strip()
    folder = tmp_path / "project"
    folder.mkdir()
    git("init", "-q", cwd=folder)
    (folder / ".pre-commit-config.yaml").write_text(CONFIG.format(repo=tmp_path / "hooks", rev=rev))
    return folder


def test_the_hooks_lint_and_fix_what_is_committed(project: Path) -> None:
    def hook(name: str, **files: str) -> subprocess.CompletedProcess[str]:
        for path, text in files.items():
            (project / f"{path}.py").write_text(text)
        git("add", "--force", ".", cwd=project)
        return run(sys.executable, "-m", "pre_commit", "run", name, "--all-files", "--verbose", cwd=project)

    passed = hook("tflint-gpu", **{"clean file": CLEAN})
    assert passed.returncode == 0, passed.stdout + passed.stderr

    (project / "build").mkdir()
    (project / "build/eager.py").write_text(EAGER)
    failed = hook("tflint-gpu", eager=EAGER)
    assert failed.returncode == 1
    assert "eager.py:4" in failed.stdout
    assert "build/eager.py" not in failed.stdout

    (project / "requirements.txt").write_text("tensorflow==2.10.1\n")
    fixed = hook("tflint-gpu-fix", eager=CLEAN, serial=SERIAL)
    assert "files were modified by this hook" in fixed.stdout
    assert (project / "serial.py").read_text() == SERIAL.replace("(256)", "(256).prefetch(tf.data.AUTOTUNE)")
